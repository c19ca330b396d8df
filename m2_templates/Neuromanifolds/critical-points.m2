-- Critical points of a quadratic loss on the image of a polynomial map. The loss of y is (y - u)^T Q (y - u) up to a
-- constant, and its differential is y |-> Q*y - q with q = Q*u. Groebner bases are kept as matrices with one row.
-- Every function is documented above its definition.
needs "./rings.m2";

-- dimensionBy G: the dimension of the variety of a Groebner basis; -1 for the unit ideal.
dimensionBy = method();
dimensionBy Matrix := G -> (
    L := ideal leadTerm G;
    if L == 1 then -1 else dim L
    );

-- degreeBy G: the degree of the variety of a Groebner basis; 0 for the unit ideal.
degreeBy = method();
degreeBy Matrix := G -> (
    L := ideal leadTerm G;
    if L == 1 then 0 else degree L
    );

-- mapInChart(f, base, A): the map f, a row of polynomials, in the chart base + s*A of its source: base is a list of
--   numbers, and s are unknowns, one for each row of the matrix A of numbers. The result is the sequence (y, J, T) of
--   matrices over a new ring, which has the variables s first: the row y of the values, J the Jacobian of f by all
--   weights, one row for each of them, and T that of y by the unknowns. Options: Scaled => true: the last unknown is a
--   factor c of the values, y = c*f, and the last row of T is f. MoreVariables => how many further variables the ring
--   has.
mapInChart = method(Options => {Scaled => false, MoreVariables => 0});
mapInChart(Matrix, List, Matrix) := o -> (f, base, A) -> (
    n := numRows A;
    S := variableRing(ring A, n + o.MoreVariables + (if o.Scaled then 1 else 0));
    s := (vars S)_{0 ..< n};
    chart := map(S, ring f, numberMatrix(S, {base}) + s * promote(A, S));
    (phi, J) := (chart f, chart jacobian f);
    T := promote(A, S) * J;
    if o.Scaled then (S_n * phi, J, T || phi) else (phi, J, T)
    );

-- criticalIdeal(y, J, Q, q): the equations J * (Q*y - q) = 0 of the points at which the differential of the loss
--   vanishes on the image of the Jacobian J, which has one row for each weight; y and q are rows.
criticalIdeal = method();
criticalIdeal(Matrix, Matrix, Matrix, Matrix) := (y, J, Q, q) ->
    ideal flatten entries(J * (Q * transpose y - transpose q));

-- kernelPairs(I, M, L): the ideal of the pairs (point of V(I), v) with v*M = 0 and L_0 v_0 + L_1 v_1 + ... = 1, M a
--   matrix over ring I: a point of V(I) where the rows of M are dependent has such a v for a general list L of numbers.
--   Its ring has the variables of I first. Options: Eliminating => true: the v_i come first, in a block of their own.
kernelPairs = method(Options => {Eliminating => false});
kernelPairs(Ideal, Matrix, List) := o -> (I, M, L) -> (
    S := ring I;
    (n, m) := (numgens S, numRows M);
    T := (
        if o.Eliminating then variableRing(coefficientRing S, n + m, MonomialOrder => {m, n})
        else variableRing(coefficientRing S, n + m)
        );
    v := (vars T)_(if o.Eliminating then toList(0 ..< m) else toList(n ..< n + m));
    toPairs := map(T, S, (vars T)_(if o.Eliminating then toList(m ..< n + m) else toList(0 ..< n)));
    normalization := v * transpose numberMatrix(T, {take(L, m)}) - matrix {{1_T}};
    toPairs I + ideal(v * toPairs M) + ideal normalization
    );

-- dependencyLocus(I, M, L): for a general list L, an ideal whose variety is the closure of the points of V(I) where
--   the rows of M are dependent, by eliminating v from kernelPairs(I, M, L).
dependencyLocus = method();
dependencyLocus(Ideal, Matrix, List) := (I, M, L) -> (
    S := ring I;
    pairIdeal := kernelPairs(I, M, L, Eliminating => true);
    back := map(S, ring pairIdeal, matrix {toList(numRows M : 0_S)} | vars S);
    ideal back selectInSubring(1, groebnerMatrix pairIdeal)
    );

-- saturateByCombination(I, J, c): I : J^infinity, with one combination of the generators of J, whose coefficients
--   are powers of the number c, in place of all of them. For a general c it lies in an associated prime of I only
--   if all of J does, and F4 computes the saturation with one more unknown. The result is a matrix with one row.
saturateByCombination = method();
saturateByCombination(Ideal, Ideal, Number) := (I, J, c) -> (
    S := ring I;
    combination := sum(numgens J, i -> c^i * J_i);
    N := variableRing(coefficientRing S, 1 + numgens S, MonomialOrder => {1, numgens S});
    toN := map(N, S, drop(gens N, 1));
    inverted := toN I + ideal(N_0 * toN combination - 1);
    (map(S, N, {0_S} | gens S)) selectInSubring(1, groebnerMatrix inverted)
    );

-- regularPart(G, T, L, c): the closure of the points of the Groebner basis G where the rows of T are independent, as a
--   Groebner basis, and the dimension of the other points, -1 if there are none: a sequence. L lists general numbers,
--   one for each row, and c is a general number.
regularPart = method();
regularPart(Matrix, Matrix, List, Number) := (G, T, L, c) -> (
    I := ideal G;
    if dimensionBy groebnerMatrix kernelPairs(I, T, L) == -1 then return (G, -1);
    dropped := dependencyLocus(I, T, L);
    (saturateByCombination(I, dropped, c), dimensionBy groebnerMatrix dropped)
    );

-- leastRelation(G, f, n): the coefficients, from the constant term up, of the polynomial of least degree in f that
--   vanishes modulo the Groebner basis G, with leading coefficient 1; null if its degree is larger than n. Over ZZ/p
--   they are lifted to integers.
leastRelation = method();
leastRelation(Matrix, RingElement, ZZ) := (G, f, n) -> (
    KK := coefficientRing ring G;
    basisOf := forceGB G;
    powers := {1_(ring G) % basisOf};
    tried := 0;
    while tried < n do (
        tried = min(2 * tried + 8, n);
        while #powers <= tried do powers = append(powers, (last powers * f) % basisOf);
        M := lift(last coefficients matrix {powers}, KK);
        r := rank M; -- the powers before the r-th are independent
        if r <= tried then (
            relation := flatten entries mingens ker M_{0 .. r};
            monic := apply(relation, c -> c / last relation);
            return if char KK > 0 then apply(monic, c -> lift(c, ZZ)) else monic;
            );
        );
    null
    );

-- conormalIdeal(F, C, Q, q): the critical points of the loss on the variety of the equations F, a matrix with one
--   row over KK[z_0, ...]: points z with Q*z - q in the span of the gradients of combinations of the equations, one
--   for each row of the matrix C. The ring of the result has their multipliers first. At a singular point the
--   gradients span less, and a general loss has no solution there. F generates a radical ideal, and C has codim many
--   general rows.
conormalIdeal = method();
conormalIdeal(Matrix, Matrix, Matrix, Matrix) := (F, C, Q, q) -> (
    Z := ring F;
    c := numRows C;
    S := variableRing(coefficientRing Z, c + numgens Z);
    z := (vars S)_{c ..< numgens S};
    toS := map(S, Z, z);
    normals := toS jacobian F * transpose promote(C, S) * transpose (vars S)_{0 ..< c};
    ideal toS F + ideal(promote(Q, S) * transpose z - transpose promote(q, S) - normals)
    );

-- singularPairs(I, y, F, L): the ideal of the pairs (point of V(I), v) for the points that y, a row over ring I, maps
--   to singular points of a variety: the gradients of F are dependent there, v_0 grad F_0 + v_1 grad F_1 + ... = 0, and
--   L_0 v_0 + L_1 v_1 + ... = 1. F is a row of codim many general combinations of the equations of the variety. The
--   ring of the result has the variables of I first.
singularPairs = method();
singularPairs(Ideal, Matrix, Matrix, List) := (I, y, F, L) -> (
    gradients := (map(ring I, ring F, y)) jacobian F;
    kernelPairs(I, transpose gradients, L)
    );

-- componentImages(I, y): the images of the components of V(I) under y, a row over ring I: a list of pairs (Q, K), Q a
--   component and K the ideal of the closure of its image.
componentImages = method();
componentImages(Ideal, Matrix) := (I, y) -> (
    -- these packages are loaded when they are needed: few losses have families of critical points
    needsPackage "Saturation"; -- minimalPrimes of 1.26 uses it and does not load it
    minimalPrimesOf := value (needsPackage "MinimalPrimes").Dictionary#"minimalPrimes";
    S := ring I;
    Z := variableRing(coefficientRing S, numColumns y);
    apply(if I == 0 then {I} else minimalPrimesOf I, Q -> (Q, trim ker map(S/Q, Z, promote(y, S/Q))))
    );

-- algebraBasis G: the monomials, in ascending order, that form a basis of the ring modulo the Groebner basis G of a
--   finite scheme: a matrix with one row.
algebraBasis = method();
algebraBasis Matrix := G -> (
    S := ring G;
    monomialList := flatten entries basis(S/ideal leadTerm G);
    L := apply(sort(monomialList, DegreeOrder => Ascending), f -> lift(f, S));
    map(S^1, S^(#L), {L})
    );

-- coordinateVectors(G, B, row): the coefficients of the entries of a row of polynomials modulo the Groebner basis G
--   in the basis B of monomials: a list of lists.
coordinateVectors = method();
coordinateVectors(Matrix, Matrix, Matrix) := (G, B, row) -> (
    remainders := row % forceGB G;
    entries transpose lift(last coefficients(remainders, Monomials => B), coefficientRing ring G)
    );
