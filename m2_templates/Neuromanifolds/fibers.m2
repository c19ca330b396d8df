-- Fibers of polynomial maps: their equations, components and multiplicities, points on them, components over the
-- algebraic closure, orbits of symmetries, and real points.
-- Every function is documented above its definition.
needs "./primes.m2";

-- independentPolynomials L: a basis of the linear span of the polynomials in the list L.
independentPolynomials = method();
independentPolynomials List := L -> (
    nonzero := select(L, f -> f != 0);
    if #nonzero == 0 then return {};
    R := ring first nonzero;
    (monomialRow, C) := coefficients matrix {nonzero};
    first entries(monomialRow * promote(mingens image lift(C, coefficientRing R), R))
    );

-- stableIdeal(I, more, used, n): the ideal I to which equations are added two lists at a time, more(used), more(used
--   + 1), ..., more(n - 1), until two lists, or the last one, add nothing: the sequence (Groebner basis as a matrix,
--   the equations that were added, the number of lists used, whether nothing was added at the end).
stableIdeal = method();
stableIdeal(Ideal, Function, ZZ, ZZ) := (I, more, used, n) -> (
    G := groebnerMatrix I;
    added := {};
    stable := false;
    while not stable and used < n do (
        further := flatten apply(toList(used ..< min(used + 2, n)), more);
        used = min(used + 2, n);
        missing := select(further, f -> f % G != 0);
        stable = #missing == 0;
        if not stable then (
            added = added | missing;
            G = groebnerMatrix(ideal G + ideal missing);
            );
        );
    (G, added, used, stable)
    );

-- independentVariables P: the indices of a largest set of variables that are independent modulo the prime ideal P.
independentVariables = method();
independentVariables Ideal := P -> (
    apply(support first independentSets(P, Limit => 1), index)
    );

-- pointWithValues(P, L): a point of V(P), P prime, with coordinates in the field, or null: independent variables get
--   the values that they have in a list of L, and the others are solved for. One list of L after another is tried,
--   because the solutions may lie in a larger field. Options: Limit => sections of a larger degree are left out;
--   Candidates => a list of points, the first of which on V(P) is taken before.
pointWithValues = method(Options => {Limit => 30, Candidates => {}});
pointWithValues(Ideal, List) := o -> (P, L) -> (
    for w in o.Candidates do (
        if vanishesAt(P, w) then return apply(w, c -> c_(coefficientRing ring P));
        );
    if dim P == 0 and degree P > 1 then return null;
    R := ring P;
    free := independentVariables P;
    for w in L do (
        J := P + ideal apply(free, i -> R_i - (w#i)_R);
        if J == 1 or dim J > 0 or degree J > o.Limit then continue;
        c := rationalZero J;
        if c =!= null then return c;
        );
    null
    );

-- isSmoothPoint(P, L): whether V(P), P prime, contains the point L and is smooth there.
isSmoothPoint = method();
isSmoothPoint(Ideal, List) := (P, L) -> vanishesAt(P, L) and rank valuesAt(jacobian P, L) == codim P;

-- irreduciblePolynomial(A, k): an irreducible polynomial x^k + n*x + 1 + n^2 in the ring A = KK[x], or null.
--   Options: Limit => the largest n that is tried.
irreduciblePolynomial = method(Options => {Limit => 1000});
irreduciblePolynomial(Ring, ZZ) := o -> (A, k) -> (
    for n from 1 to o.Limit do (
        f := A_0^k + n*A_0 + 1 + n*n;
        if n_A != 0 and isPrime ideal f then return f;
        );
    null
    );

-- conjugateCount(P, L): the number of components of V(P), P prime, over the algebraic closure, or null. They are
--   conjugate and have the same degree, so that their number divides degree P. Points: they are degree P many. A
--   smooth point with coordinates in the field, which is looked for in the list L, lies on every conjugate, so that
--   there is one. Otherwise V(P) is taken over the field with p^(degree P) elements, where all conjugates are defined.
--   Options: Limit => the largest degree of that field.
conjugateCount = method(Options => {Limit => 12});
conjugateCount(Ideal, List) := o -> (P, L) -> (
    R := ring P;
    n := numgens R;
    if dim P == 0 then return degree P;
    if degree P == 1 or any(L, w -> isSmoothPoint(P, w)) then return 1;
    if char R == 0 or degree P > o.Limit then return null;
    f := irreduciblePolynomial(variableRing(coefficientRing R, 1), degree P);
    if f === null then return null;
    T := variableRing(coefficientRing R, n + 1);
    extended := (map(T, R, take(gens T, n))) P + ideal (map(T, ring f, {T_n})) f;
    #primesOver extended
    );

-- multiplicitiesAlong(I, C): the multiplicity of I along each of its minimal primes; C must list all of them.
multiplicitiesAlong = method();
multiplicitiesAlong(Ideal, List) := (I, C) -> (
    if sumsUp(I, C) then return apply(C, P -> 1);
    -- the other components are removed first
    alone := i -> (
        others := C_(select(#C, j -> j != i));
        if #others == 0 then I else saturate(I, intersect others)
        );
    apply(#C, i -> degree alone i // degree C#i)
    );

-- reducedAlong(I, C): whether I is generically reduced along each of its minimal primes P in the list C: I : P is
--   not in P.
reducedAlong = method();
reducedAlong(Ideal, List) := (I, C) -> (
    if sumsUp(I, C) then apply(C, P -> true)
    else apply(C, P -> (gens(I : P)) % P != 0)
    );

-- sumsUp(I, C): whether the components C have one dimension and their degrees add up to that of I, so that each
--   counts once.
sumsUp = method();
sumsUp(Ideal, List) := (I, C) -> all(C, P -> dim P == dim I) and sum(C, degree) == degree I;

-- dependentFields(I, M): whether linear vector fields are linearly dependent at some point of V(I). A field is a
--   list of {i, j, c}: coordinate i moves by c times coordinate j. The dependency z_0 m_0 + z_1 m_1 + ... = 0 is
--   looked for in the parts z_0 = ... = z_(i-1) = 0, z_i = 1.
dependentFields = method();
dependentFields(Ideal, List) := (I, M) -> (
    R := ring I;
    n := numgens R;
    KK := coefficientRing R;
    T := variableRing(KK, n + #M);
    z := drop(gens T, n);
    component := (m, k) -> sum(select(m, e -> e#0 == k), e -> (e#2)_KK * T_(e#1));
    moved := apply(n, k -> sum(#M, m -> z#m * component(M#m, k)));
    dependency := (map(T, R, take(gens T, n))) I + ideal moved;
    hasNoZeros := J -> ideal leadTerm groebnerMatrix J == 1;
    any(#M, i -> not hasNoZeros(dependency + ideal append(take(z, i), z#i - 1)))
    );

-- residuePoint(m, draw): a maximal ideal as a point over a number field: {coefficients of the minimal polynomial of
--   a linear form u, from the constant term up; every variable as a list of coefficients of powers of u}, or null.
--   The variables are tried as u, then combinations with numbers that the function `draw` returns. Options: Limit =>
--   the number of combinations that are tried.
residuePoint = method(Options => {Limit => 40});
residuePoint(Ideal, Function) := o -> (m, draw) -> (
    A := (ring m)/m;
    KK := coefficientRing ring m;
    b := basis A;
    k := numColumns b;
    inBasis := f -> lift(last coefficients(matrix {{f}}, Monomials => b), KK);
    for attempt from 0 to numgens A + o.Limit - 1 do (
        u := if attempt < numgens A then A_attempt else sum(gens A, x -> (draw())_KK * x);
        powers := matrix {apply(k, j -> inBasis(u^j))};
        if det powers == 0 then continue;
        inPowers := f -> flatten entries(inverse powers * inBasis f);
        return {append(-inPowers(u^k), 1_KK), apply(gens A, inPowers)};
        );
    null
    );

-- torusWeights(f, c, J): the torus of the rescalings of variables that multiply each coordinate f_i by a number, by
--   1 if c_i is not 0, and under which each generator of J is multiplied by a number: for each variable the list of
--   its weights. f and c are rows.
torusWeights = method();
torusWeights(Matrix, Matrix, Ideal) := (f, c, J) -> (
    differences := g -> (
        e := exponents g;
        apply(drop(e, 1), x -> x - e#0)
        );
    invariant := (g, value) -> if value == 0 then differences g else exponents g;
    rows := flatten apply(flatten entries f, flatten entries c, invariant);
    rows = rows | flatten apply(flatten entries gens J, differences);
    entries gens ker if #rows == 0 then map(ZZ^0, ZZ^(numgens ring f), 0) else matrix rows
    );

-- torusSection(F, weightList, draw): F and linear equations that meet every orbit of the torus with these weights on
--   V(F), real orbits in real points. A form without zeros on V(F), in variables that the torus multiplies alike, is
--   carried to 1, one such form after the other, where their weights are independent modulo 2; variables of small
--   weights come first, so that rational points of the fiber stay rational.
torusSection = method();
torusSection(Ideal, List, Function) := (F, weightList, draw) -> (
    S := ring F;
    used := {};
    isIndependent := w -> rank(matrix append(used, w) ** ZZ/2) > #used;
    classes := values partition(i -> weightList#i, toList(0 ..< numgens S));
    for alike in sortedBy(C -> {sum(weightList#(first C), abs), -first C}, classes) do (
        w := weightList#(first alike);
        if #w > 0 and isIndependent w then (
            candidates := apply(take(alike, 4), i -> S_i) | {sum(alike, i -> (draw())_S * S_i)};
            k := position(candidates, l -> F + ideal l == 1);
            if k =!= null then (
                used = append(used, w);
                F = F + ideal(candidates#k - 1);
                );
            );
        );
    F
    );

-- sectionPrimes(F, draw): maximal ideals over F at which independent variables have the values that `draw` returns.
--   Options: Limit => how many choices of values are made; MaxDegree => points of larger degree are left out; Points =>
--   how many points are enough.
sectionPrimes = method(Options => {Limit => 8, MaxDegree => infinity, Points => 6});
sectionPrimes(Ideal, Function) := o -> (F, draw) -> (
    S := ring F;
    if F == 1 then return {};
    sets := independentSets(F, Limit => 4);
    points := {};
    for attempt from 0 to o.Limit - 1 when #points < o.Points do (
        free := support sets#(attempt % #sets);
        section := F + ideal(apply(free, x -> x - (draw())_S) | {0_S});
        if section != 1 and dim section == 0 then (
            points = points | select(primesOver section, m -> degree m <= o.MaxDegree);
            );
        );
    points
    );

-- distancePrimes(F, draw): maximal ideals over F that meet every connected component of the real points of V(F),
--   over QQ: the sequence (list of maximal ideals, whether all were found). On a component of codimension c the
--   distance from a random point u has a minimum on each of them; there the Jacobian together with w - u has rank <=
--   c (Lagrange, or a singular point). These points form a proper closed subset, which is cut again until it is finite.
--   Options: Limit => how many points u are tried.
distancePrimes = method(Options => {Limit => 200});
distancePrimes(Ideal, Function) := o -> (F, draw) -> (
    S := ring F;
    waiting := primesOver F;
    points := {};
    attempts := 0;
    while #waiting > 0 and attempts < o.Limit do (
        Q := first waiting;
        waiting = drop(waiting, 1);
        if dim Q == 0 then points = append(points, Q)
        else (
            attempts = attempts + 1;
            c := codim Q;
            offset := transpose(vars S - matrix {apply(numgens S, i -> (draw() + 1/7)_S)});
            critical := if c == 0 then Q + ideal offset else Q + minors(c + 1, jacobian Q | offset);
            smaller := primesOver critical;
            -- the point u was special
            if any(smaller, C -> dim C >= dim Q) then waiting = append(waiting, Q)
            else waiting = waiting | smaller;
            );
        );
    (points, #waiting == 0)
    );

-- isMultihomogeneous(L, J, blocks): whether the polynomials L are homogeneous of one positive degree in each block
--   of variables, and the generators of J homogeneous in each; a block is a list of indices.
isMultihomogeneous = method();
isMultihomogeneous(List, Ideal, List) := (L, J, blocks) -> (
    degreesIn := (forms, B) -> unique flatten apply(forms, f -> apply(exponents f, e -> sum(B, i -> e#i)));
    oneDegree := B -> (
        degreeList := degreesIn(L, B);
        #degreeList == 1 and first degreeList > 0
        );
    #L > 0 and all(blocks, oneDegree) and
        all(flatten entries gens J, f -> all(blocks, B -> #degreesIn({f}, B) <= 1))
    );

-- fiberEquations(f, c, J): the equations f_i - c_i of a fiber, f a row of polynomials and c a list of numbers, and the
--   generators of J.
fiberEquations = method();
fiberEquations(Matrix, List, Ideal) := (f, c, J) ->
    flatten entries(f - numberMatrix(ring f, {c})) | flatten entries gens J;

-- fiberPoints(F, draw): points of V(F), over QQ, up to conjugation: the sequence (list of residuePoint, whether every
--   connected component of the real points is met). Options: Complete => true: it is met (distancePrimes), unless a
--   limit was reached; otherwise some points, if there are infinitely many (sectionPrimes). MaxDegree => points of
--   larger degree are left out.
fiberPoints = method(Options => {Complete => false, MaxDegree => 40});
fiberPoints(Ideal, Function) := o -> (F, draw) -> (
    (maximalIdeals, allFound) := (
        if dim F <= 0 then (primesOver F, true)
        else if o.Complete then distancePrimes(F, draw)
        else (sectionPrimes(F, draw, MaxDegree => o.MaxDegree), false)
        );
    small := select(maximalIdeals, m -> degree m <= o.MaxDegree);
    points := apply(small, m -> residuePoint(m, draw));
    (delete(null, points), allFound and #small == #maximalIdeals and not member(null, points))
    );

-- hasClosedImage(f, J, blocks): whether the image of V(J) under the row f of polynomials is known to be closed: the
--   blocks are lists of indices and contain each variable once, so that V(J) is a cone over a closed set in a product
--   of projective spaces; the coordinates are homogeneous of positive degree in each block, and vanish only where a
--   block is zero.
hasClosedImage = method();
hasClosedImage(Matrix, Ideal, List) := (f, J, blocks) -> (
    nonzero := select(flatten entries f, g -> g != 0);
    S := ring f;
    isPartition := sort flatten blocks == toList(0 ..< numgens S);
    if not isPartition or not isMultihomogeneous(nonzero, J, blocks) then return false;
    basePoints := ideal nonzero + J;
    for B in blocks do basePoints = saturate(basePoints, ideal apply(B, i -> S_i));
    basePoints == 1
    );
