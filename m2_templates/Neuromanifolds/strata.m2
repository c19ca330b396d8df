-- Singular loci and strata of varieties given by equations: components by ranks of the Jacobian, associated primes
-- of the singular scheme, points, multiplicities, Milnor numbers and delta invariants.
-- Every function is documented above its definition.
needs "./primes.m2";
needsPackage "PrimaryDecomposition";
needsPackage "TangentCone";

-- adjugate B: the matrix with B * adjugate B = det(B) * identity, by cofactors.
adjugate = method();
adjugate Matrix := B -> (
    r := numRows B;
    cofactor := (i, j) -> (-1)^(i+j) * det(submatrix'(B, {j}, {i}), Strategy => Cofactor);
    if r == 1 then matrix {{1_(ring B)}} else matrix table(r, r, cofactor)
    );

-- genericRank(M, Q): the rank of a matrix at a general point of V(Q), Q prime, and a minor of that size that is not
--   in Q: the sequence (rank, minor). Bordering an r x r block B with det B != 0 by row i and column j gives the
--   minor E_(i,j) of E = det(B) M - M_columns adj(B) M^rows; an entry of low degree with few terms is the next minor.
--   Options: Limit => the largest rank to look for.
genericRank = method(Options => {Limit => infinity});
genericRank(Matrix, Ideal) := o -> (M, Q) -> (
    S := ring M;
    A := promote(M, S/Q);
    (E, minor) := (A, 1_(S/Q));
    (rowList, columnList) := ({}, {});
    simplicity := ij -> (
        f := lift(E_ij, S);
        {first degree f, #(terms f)}
        );
    while #rowList < o.Limit and E != 0 do (
        nonzero := select(flatten table(numRows A, numColumns A, identity), ij -> E_ij != 0);
        (i, j) := first sortedBy(simplicity, nonzero);
        minor = E_(i, j);
        rowList = append(rowList, i);
        columnList = append(columnList, j);
        if #rowList < o.Limit then (
            block := A^rowList_columnList;
            E = minor * A - A_columnList * adjugate block * A^rowList;
            );
        );
    (#rowList, lift(minor, S))
    );

-- singularComponents P: the singular points of V(P), P prime of codimension c: a list of pairs (Q, r), r < c the
--   rank of the Jacobian at a general point of V(Q). A few minors cut out a set that contains the singular points.
--   On each component Q of that set genericRank finds that the rank is below c, so that V(Q) is singular, or a minor
--   that is not in Q, which is added. The components may contain each other: see largestComponents.
--   Options: Minors => {{columns, rows}, ...}: minors of the Jacobian to begin with, as lists of equations and
--   variables; the three with the fewest terms are used. Limit => all minors are used if they are not more.
singularComponents = method(Options => {Minors => {}, Limit => 40});
singularComponents Ideal := o -> P -> (
    c := codim P;
    J := jacobian P;
    waiting := {P};
    if binomial(numRows J, c) * binomial(numColumns J, c) <= o.Limit then waiting = primesOver(P + minors(c, J))
    else (
        firstMinors := sortedBy(f -> #(terms f), apply(o.Minors, m -> det J^(m#1)_(m#0)));
        for f in take(firstMinors, 3) do (
            waiting = largestComponents flatten apply(waiting, Q -> hypersurfaceSection(Q, f));
            );
        );
    singularPrimes := {};
    examined := new MutableHashTable;
    -- each step removes Q, or replaces it by ideals of larger codimension
    while #waiting > 0 do (
        Q := first waiting;
        waiting = drop(waiting, 1);
        name := toString gens gb Q;
        if examined#?name or any(singularPrimes, K -> isSubset(first K, Q)) then continue;
        examined#name = true;
        (r, minor) := genericRank(J, Q, Limit => c);
        if r < c then singularPrimes = append(singularPrimes, (Q, r))
        else waiting = waiting | hypersurfaceSection(Q, minor);
        );
    singularPrimes
    );

-- singularScheme P: the ideal of the singular scheme of V(P), P prime: P and all minors of the Jacobian.
singularScheme = method();
singularScheme Ideal := P -> P + minors(codim P, jacobian P);

-- schemePrimes(J, L): the minimal and the embedded primes of J, as a sequence of two lists. If L lists prime ideals
--   among which all associated primes are, as where a connected group acts with finitely many orbits and L has the
--   ideals of their closures, a prime Q of codimension c is associated exactly if it contains the annihilator of
--   Ext^c(S/J, S). The radical is checked whatever L is: J is in it, and a power of it is in J; otherwise J is
--   decomposed.
schemePrimes = method();
schemePrimes(Ideal, List) := (J, L) -> (
    S := ring J;
    annihilators := hashTable apply(unique apply(L, codim), c -> c => ann Ext^c(comodule J, S));
    associated := unique select(L, Q -> isSubset(annihilators#(codim Q), Q));
    minimal := select(associated, Q -> all(associated, M -> M == Q or not isSubset(M, Q)));
    radicalOf := if #minimal == 0 then ideal 1_S else intersect minimal;
    isRadical := isSubset(J, radicalOf) and (
        any(1..3, k -> isSubset(radicalOf^k, J)) or saturate(J, radicalOf) == 1
        );
    if not isRadical then (
        minimal = primesOver J;
        associated = associatedPrimes J;
        );
    (minimal, select(associated, Q -> all(minimal, M -> M != Q)))
    );

-- singularStrata I: the components of the singular locus of V(I), I prime, and the embedded components of the singular
--   scheme where they are known: a list of pairs (Q, r), r the rank of the Jacobian at a general point of V(Q), and a
--   list of prime ideals. Options: Closures => prime ideals among which all associated primes of the singular scheme
--   are, for schemePrimes; without them singularComponents is used, with its options Minors and Limit.
singularStrata = method(Options => {Closures => {}, Minors => {}, Limit => 40});
singularStrata Ideal := o -> I -> (
    if codim I == 0 then return ({}, {});
    (rankOn, embeddedOnes) := (
        if #o.Closures == 0 then (singularComponents(I, Minors => o.Minors, Limit => o.Limit), {})
        else (
            (minimalOnes, others) := schemePrimes(singularScheme I, o.Closures);
            (apply(minimalOnes, Q -> (Q, first genericRank(jacobian I, Q, Limit => codim I))), others)
            )
        );
    rankOf := Q -> last rankOn#(position(rankOn, pair -> first pair == Q));
    (apply(largestComponents apply(rankOn, first), Q -> (Q, rankOf Q)), embeddedOnes)
    );

-- multiplicityAt(I, L): the multiplicity of V(I) at the point L, the degree of the tangent cone.
multiplicityAt = method();
multiplicityAt(Ideal, List) := (I, L) -> (
    S := ring I;
    translation := map(S, S, vars S + matrix {apply(L, c -> c_S)});
    degree tangentCone translation I
    );

-- milnorNumber(I, Q): the Milnor number of the hypersurface V(I) at one of the points of V(Q), which are conjugate;
--   null if V(I) is no hypersurface, does not contain the points, or they are not isolated among the critical points
--   of the equation. In a characteristic that is not larger than the number it depends on the equation.
milnorNumber = method();
milnorNumber(Ideal, Ideal) := (I, Q) -> (
    if dim Q > 0 or codim I != 1 or numgens trim I != 1 or not isSubset(I, Q) then return null;
    partials := ideal jacobian trim I;
    elsewhere := saturate(partials, Q);
    if elsewhere + Q == 1 then degree(partials : elsewhere) // degree Q
    );

-- deltaInvariants(I, L): for the prime ideal I of an affine curve, dim I == 1, and each Q in the list L of its singular
--   points the delta invariant at one of the points of V(Q), which are conjugate: the length of the normalization
--   modulo the ring. null if V(I) is not a curve, or Macaulay2 cannot compute the normalization
--   (exponents of curves of high degree can overflow).
deltaInvariants = method();
deltaInvariants(Ideal, List) := (I, L) -> (
    if dim I != 1 then return null;
    -- these packages are loaded when they are needed, because they are large
    icMapOf := value (needsPackage "IntegralClosure").Dictionary#"icMap";
    pushForwardOf := value (needsPackage "PushForward").Dictionary#"pushFwd";
    S := ring I;
    inclusion := try icMapOf(S/I) else null;
    if inclusion === null then return null;
    delta := (
        if target inclusion === source inclusion then comodule ideal 1_S
        else coker (last pushForwardOf inclusion)(1_(target inclusion))
        );
    lengthAt := (N, Q) -> if N == 0 then 0 else degree(N / (Q^(degree N) * N));
    apply(L, Q -> lengthAt(delta, promote(Q, ring delta)) // degree Q)
    );
