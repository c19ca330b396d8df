-- Tests of strata.m2. Run them with M2 --script strata-tests.m2; they end with the word complete.
needs "./strata.m2";

S = (ZZ/101)[x,y,z];
M = matrix {{x, y}, {z, x}};
assert(M * adjugate M - det M * id_(S^2) == 0 and adjugate matrix {{x}} == matrix {{1_S}});
(r, f) = genericRank(M, ideal(x^2 - y*z));
assert(r == 1 and f % ideal(x^2 - y*z) != 0);
assert(first genericRank(M, ideal x) == 2 and first genericRank(M, ideal x, Limit => 1) == 1);

-- the Whitney umbrella is singular along a line, with a pinch point at the origin; all minors or none of them
umbrella = ideal(x^2 - y^2*z);
assert(largestComponents apply(singularComponents umbrella, first) == {ideal(y, x)});
C = largestComponents apply(singularComponents(umbrella, Limit => 0, Minors => {{{0}, {0}}}), first);
assert(C == {ideal(y, x)});
(minimalOnes, embeddedOnes) = schemePrimes(singularScheme umbrella, {ideal(x, y), ideal(x, y, z)});
assert(minimalOnes == {ideal(x, y)} and embeddedOnes == {ideal(x, y, z)});
-- primes that are missing in the list are found
(minimalOnes, embeddedOnes) = schemePrimes(singularScheme umbrella, {ideal(x, y, z)});
assert(minimalOnes == {ideal(y, x)} and embeddedOnes == {ideal(x, y, z)});
assert(last schemePrimes(singularScheme umbrella, {}) == {ideal(x, y, z)});
assert(multiplicityAt(umbrella, {0, 0, 5}) == 2 and multiplicityAt(umbrella, {1, 1, 1}) == 1);

-- the node, the cusp and the singularity A_3
T = QQ[u,v];
origin = ideal(u, v);
assert(milnorNumber(ideal(v^2 - u^2*(u+1)), origin) == 1 and milnorNumber(ideal(v^2 - u^3), origin) == 2);
assert(milnorNumber(ideal(v^2 - u^4), origin) == 3 and milnorNumber(ideal(u*v^2), ideal u) === null);
assert(milnorNumber(ideal(v^2 - u^3 + 1), origin) === null and deltaInvariants(ideal 0_T, {origin}) === null);
assert(deltaInvariants(ideal(v^2 - u^3), {origin}) == {1} and deltaInvariants(ideal(v^2 - u^5), {origin}) == {2});
assert(deltaInvariants(ideal v, {origin}) == {0});
print "complete";
