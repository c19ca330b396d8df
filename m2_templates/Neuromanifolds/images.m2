-- Images of polynomial maps and their closures: a library for Macaulay2 1.21 and newer.
-- A map to affine space is a matrix with one row, the coordinates, over a ring of polynomials or a quotient of one.
-- Every function is documented above its definition.
needs "./rings.m2";

-- coneOver f: coordinates whose image has a cone as its closure.
--   With IsCone => true (the default) the closure of the image of f must be a cone, and it does not change: f is
--   returned if its coordinates are forms of one positive degree, and multiplied by a new variable otherwise.
--   With IsCone => false the coordinates of f and one more, the constant 1, are multiplied by a new variable: they
--   parametrize the affine cone over the image.
coneOver = method(Options => {IsCone => true});
coneOver Matrix := o -> f -> (
    nonzero := select(flatten entries f, g -> g != 0);
    degreesOf := unique apply(nonzero, g -> if isHomogeneous g then first degree g else -1);
    if o.IsCone and #degreesOf <= 1 and not member(degreesOf, {{-1}, {0}}) then return f;
    R := ring f;
    T := first flattenRing variableRing(R, 1);
    g := T_0 * (map(T, R, drop(gens T, 1))) f;
    if o.IsCone then g else g | matrix {{T_0}}
    );

-- spanBasis f: the indices of coordinates that form a basis of the linear span of all of them; those of few terms are
--   preferred.
spanBasis = method();
spanBasis Matrix := f -> (
    KK := coefficientRing ring f;
    C := last coefficients f;
    M := map(KK^(numRows C), KK^(numColumns C), (i, j) -> lift(C_(i, j), KK));
    termCount := i -> number(flatten entries M_{i}, c -> c != 0);
    chosen := {};
    for i in sortedBy(termCount, toList(0 ..< numColumns M)) do (
        if rank M_(append(chosen, i)) > #chosen then chosen = append(chosen, i);
        );
    sort chosen
    );

-- imageIdeal f: the ideal of the Zariski closure of the image, the kernel of the ring map z_i |-> f_i.
--   The coordinates must be forms of one degree (see coneOver). Source and target are graded compatibly, which makes
--   `ker` fast; the variables of the ring of the result have degree 1.
imageIdeal = method();
imageIdeal Matrix := f -> (
    KK := coefficientRing ring f;
    nonzero := select(flatten entries f, g -> g != 0);
    e := if #nonzero == 0 then 1 else max(1, first degree first nonzero);
    n := numColumns f;
    S := variableRing(KK, n, Degrees => toList(n : e));
    standard := variableRing(KK, n);
    trim (map(standard, S, gens standard)) ker map(ring f, S, f)
    );

-- parametrizedIdeal(S, f): the ideal, in S, of the closure of the image of a map whose coordinates are homogeneous, of
--   degrees that may differ; the variables of S stand for the coordinates.
parametrizedIdeal = method();
parametrizedIdeal(Ring, Matrix) := (S, f) -> (
    T := variableRing(coefficientRing S, numColumns f, Degrees => apply(flatten entries f, g -> first degree g));
    trim (map(S, T, vars S)) ker map(ring f, T, f)
    );

-- hVector I: the coefficients of h in the Hilbert series h(T) / (1 - T)^(dim I) of a homogeneous ideal.
hVector = method();
hVector Ideal := I -> (
    h := numerator reduceHilbert hilbertSeries I;
    apply(toList(0..first degree h), k -> coefficient((ring h)_0^k, h))
    );

-- initialIdeal I: the ideal of leading monomials. Options: Strategy => "MGB" for sparse, "F4" for dense generators.
initialIdeal = method(Options => {Strategy => "F4"});
initialIdeal Ideal := o -> I -> (
    if I == 0 then monomialIdeal 0_(ring I)
    else monomialIdeal leadTerm groebnerBasis(I, Strategy => o.Strategy)
    );

-- finiteLength I: the dimension of (ring I)/I over the field, for I in a polynomial ring; 0 for the unit ideal, null
--   if it is not finite.
finiteLength = method();
finiteLength Ideal := I -> (
    J := initialIdeal I;
    if J == 1 then 0 else if dim J == 0 then degree J
    );

-- distinctValues(I, y): the number of values of y at the zeros of I, over the algebraic closure; I has finite length.
--   In characteristic p it is exact if the length is below p, and a lower bound otherwise.
--   The first power of y that is a combination of those before it gives the minimal polynomial of y.
distinctValues = method();
distinctValues(Ideal, RingElement) := (I, y) -> (
    if I == 1 then return 0;
    Q := (ring I)/I;
    KK := coefficientRing ring I;
    b := basis Q;
    powers := accumulate(times, 1_Q, toList(numColumns b : promote(y, Q)));
    M := lift(last coefficients(matrix {{1_Q} | powers}, Monomials => b), KK);
    r := rank M;
    c := solve(M_{0..r-1}, M_{r});
    T := variableRing(KK, 1);
    f := T_0^r - sum(r, i -> c_(i,0) * T_0^i);
    r - first degree gcd(f, diff(T_0, f))
    );

-- sectionLength(I, M): the length of T/J, where J is the restriction of I to the linear space that the columns of M
--   span; null if it is zero or not finite.
--   For homogeneous I and a space of dimension codim I whose section is finite, it equals degree I if and only if
--   (ring I)/I is Cohen-Macaulay.
sectionLength = method();
sectionLength(Ideal, Matrix) := (I, M) -> (
    T := variableRing(coefficientRing ring I, numColumns M);
    restriction := map(T, ring I, transpose(promote(M, T) * transpose vars T));
    L := initialIdeal restriction I;
    if dim L == 0 then degree L
    );

-- isUnmixed I: whether all associated primes of a proper ideal of a polynomial ring S over a field have the same
--   dimension: codim Ext^i(S/I, S) > i for all i > codim I (Eisenbud, Huneke, Vasconcelos, Direct
--   methods for primary decomposition, Theorem 1.1).
--   No annihilator is computed, which takes most of the time of topComponents.
isUnmixed = method();
isUnmixed Ideal := I -> (
    if version#"VERSION" >= "1.25" then needsPackage "Complexes"; -- before, Ext is in the core
    S := ring I;
    if not isPolynomialRing S then error "isUnmixed: expected an ideal of a polynomial ring";
    M := comodule I;
    all(toList(codim I + 1 .. numgens S), i -> codim Ext^i(M, S) > i)
    );

-- restrictedMap(f, L, fixed): the coordinates f where the variables whose indices are in `fixed` have their values
--   in the point L; a matrix over the ring of the other variables. Also the values of these at L: the sequence (map,
--   point). The ring of f is a polynomial ring: on a subvariety the other variables would not be free.
restrictedMap = method();
restrictedMap(Matrix, List, List) := (f, L, fixed) -> (
    R := ring f;
    if not isPolynomialRing R then error "restrictedMap: the source must be an affine space";
    KK := coefficientRing R;
    moving := select(numgens R, i -> not member(i, fixed));
    U := variableRing(KK, #moving);
    images := new MutableList from apply(L, c -> c_U);
    scan(#moving, k -> images#(moving#k) = U_k);
    ((map(U, R, toList images)) f, L_moving)
    );
