-- Tests of primes.m2. Run them with M2 --script primes-tests.m2; they end with the word complete.
needs "./primes.m2";

S = (ZZ/101)[x,y,z];
assert(primesOver ideal 1_S == {} and primesOver ideal 0_S == {ideal 0_S} and #primesOver ideal(x*y) == 2);
assert(largestComponents {ideal(x, y), ideal x, ideal(x + y, z)} == {ideal x, ideal(x + y, z)});
assert(#hypersurfaceSection(ideal(x^2 - y*z), x) == 2 and hypersurfaceSection(ideal x, x*y) == {ideal x});
-- the line x = y = 0 lies on both factors and is listed once
assert(#hypersurfaceSection(ideal(x^2 - y*z), x*y) == 2);

point = rationalPoint(ideal(x^2 - y*z), numberStream {3, 1, 4, 1, 5, 9, 2, 6});
assert(vanishesAt(ideal(x^2 - y*z), point));
print "complete";
