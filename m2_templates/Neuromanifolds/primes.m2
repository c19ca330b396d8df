-- Prime ideals: components of varieties and points on them.
-- Every function is documented above its definition.
needs "./rings.m2";
needsPackage "Saturation"; -- minimalPrimes of 1.26 uses it and does not load it
needsPackage "MinimalPrimes";

-- primesOver J: the minimal primes; {} for the unit ideal, which has none.
primesOver = method();
primesOver Ideal := J -> (
    if J == 1 then {} else if J == 0 then {J} else minimalPrimes J
    );

-- largestComponents L: of a list of prime ideals those that contain no other; each V(Q) is then not in another one.
largestComponents = method();
largestComponents List := L -> (
    kept := {};
    for Q in sortedBy(Q -> -(dim Q), apply(L, Q -> ideal gens gb Q)) do (
        if all(kept, K -> not isSubset(K, Q)) then kept = append(kept, Q);
        );
    kept
    );

-- hypersurfaceSection(Q, f): the components of the intersection of V(Q), Q prime, with f = 0: one irreducible factor
--   of f at a time, which is easier than all at once.
hypersurfaceSection = method();
hypersurfaceSection(Ideal, RingElement) := (Q, f) -> (
    if f % Q == 0 then return {Q};
    factors := select(apply(toList factor f, first), g -> first degree g > 0);
    largestComponents flatten apply(factors, g -> primesOver(Q + ideal g))
    );

-- rationalZero J: a point of V(J) with coordinates in the field, as a list, from the minimal primes of J of dimension 0
--   and degree 1, or null.
rationalZero = method();
rationalZero Ideal := J -> (
    S := ring J;
    linear := if dim J == 0 and degree J == 1 then {J} else select(primesOver J, m -> dim m == 0 and degree m == 1);
    if #linear > 0 then apply(gens S, x -> lift(x % first linear, coefficientRing S))
    );

-- rationalPoint(Q, draw): a point with coordinates in the field on a random linear section of V(Q), Q prime, as a
--   list, or null. `draw` is a function without arguments that returns integers, such as numberStream. Options:
--   Limit => the number of sections that are tried; there is only one if V(Q) is finite.
rationalPoint = method(Options => {Limit => 12});
rationalPoint(Ideal, Function) := o -> (Q, draw) -> (
    S := ring Q;
    KK := coefficientRing S;
    for attempt from 1 to (if dim Q == 0 then 1 else o.Limit) do (
        section := ideal apply(dim Q, i -> sum(gens S, x -> (draw())_KK * x) + (draw())_S);
        c := rationalZero(Q + section);
        if c =!= null then return c;
        );
    null
    );
