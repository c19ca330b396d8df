-- Rings of polynomials, points and numbers: what the other files of this library share. For Macaulay2 1.21 and newer.
-- Every function is documented above its definition.

-- variableRing(KK, n): the polynomial ring KK[z_0, ..., z_(n-1)]; no global symbol gets a value.
--   Options: Degrees => the degrees of the variables, VariableBaseName => a symbol or a string instead of z,
--   MonomialOrder => as for a polynomial ring.
variableRing = method(Options => {Degrees => null, VariableBaseName => null, MonomialOrder => null});
variableRing(Ring, ZZ) := o -> (KK, n) -> (
    z := local z;
    baseName := if o.VariableBaseName === null then z else o.VariableBaseName;
    degreesOf := if o.Degrees === null then toList(n : 1) else o.Degrees;
    order := if o.MonomialOrder === null then {} else {MonomialOrder => o.MonomialOrder};
    KK(monoid new Array from {Variables => n, VariableBaseName => baseName, Degrees => degreesOf} | order)
    );

-- numberMatrix(KK, rows): the matrix over KK with these rows of integers or fractions.
--   Options: Columns => the number of columns, needed only if there are no rows.
numberMatrix = method(Options => {Columns => 0});
numberMatrix(Ring, List) := o -> (KK, rows) -> (
    if #rows == 0 then map(KK^0, KK^(o.Columns), 0)
    else map(KK^(#rows), KK^(#(first rows)), applyTable(rows, c -> c_KK))
    );

-- valuesAt(f, L): a polynomial, a matrix or an ideal at the point L, a list of integers, fractions or elements of the
--   field.
valuesAt = method();
valuesAt(Thing, List) := (f, L) -> (
    KK := coefficientRing ring f;
    (map(KK, ring f, apply(L, c -> c_KK))) f
    );

-- vanishesAt(I, L): whether an ideal vanishes at the point L.
vanishesAt = method();
vanishesAt(Ideal, List) := (I, L) -> valuesAt(gens I, L) == 0;

-- coefficientsAt(f, L): the coefficients of a polynomial at the monomials whose exponents are listed in L.
coefficientsAt = method();
coefficientsAt(RingElement, List) := (f, L) -> (
    coefficientOf := hashTable listForm f;
    apply(L, e -> if coefficientOf#?e then coefficientOf#e else 0_(coefficientRing ring f))
    );

-- groebnerMatrix I: a Groebner basis of I as a matrix with one row, by F4 over finite fields.
groebnerMatrix = method();
groebnerMatrix Ideal := I -> (
    G := if char ring I == 0 then gens gb I else groebnerBasis(I, Strategy => "F4");
    forceGB G;
    G
    );

-- sortedBy(f, L): the list L sorted by the values of f; equal values keep their order.
sortedBy = method();
sortedBy(Function, List) := (f, L) -> L_(apply(sort apply(#L, i -> {f L#i, i}), last));

-- numberStream L: a function without arguments that returns the integers of the list L in their order, and then
--   continues: the n-th number is the sum of the two that came #L and #L - 1 before it, reduced to the range of L (a
--   lagged Fibonacci generator). The caller chooses L at random.
numberStream = method();
numberStream List := L -> (
    buffer := new MutableList from L;
    bound := max apply(L, abs);
    drawn := 0;
    () -> (
        k := drawn % #buffer;
        n := buffer#k;
        buffer#k = (n + buffer#((k + 1) % #buffer) + bound) % (2 * bound + 1) - bound;
        drawn = drawn + 1;
        n
        )
    );
