-- Tests of fibers.m2. Run them with M2 --script fibers-tests.m2; they end with the word complete.
needs "./fibers.m2";

R = (ZZ/101)[x,y,z];
assert(#independentPolynomials {x + y, x - y, x, 0_R} == 2 and independentPolynomials {0_R} == {});

-- equations x^2 - 1 and y - 1 arrive in the first two lists; two more add nothing
more = k -> {{x^2 - 1}, {y - x^2}, {x^2 - y}, {x^2*y - 1}, {z}}#k;
(G, added, used, stable) = stableIdeal(ideal 0_R, more, 0, 5);
assert(ideal G == ideal(x^2 - 1, y - 1) and #added == 2 and used == 4 and stable);
assert(not last stableIdeal(ideal 0_R, more, 0, 2));

quadric = ideal(x^2 - y*z);
assert(#independentVariables quadric == 2);
point = pointWithValues(quadric, {{2, 3, 5}, {3, 4, 9}});
assert(vanishesAt(quadric, point) and isSmoothPoint(quadric, point) and not isSmoothPoint(quadric, {0, 0, 0}));
assert(pointWithValues(ideal(x^2 - 2, y, z), {{1, 1, 1}}) === null);

-- 2 is not a square modulo 101, so x^2 - 2*y^2 is two conjugate planes
A = (ZZ/101)[a];
assert(isPrime ideal irreduciblePolynomial(A, 3));
assert(conjugateCount(ideal(x^2 - 2*y^2), {}) == 2 and conjugateCount(quadric, {}) == 1);
assert(conjugateCount(ideal(x^2 - 2, y, z), {}) == 2 and conjugateCount(quadric, {{0, 0, 1}}) == 1);
-- the origin is rational, but not a smooth point
assert(conjugateCount(ideal(x^2 - 2*y^2), {{0, 0, 0}}) == 2);

double = ideal(x^2*y);
assert(multiplicitiesAlong(double, {ideal x, ideal y}) == {2, 1});
assert(reducedAlong(double, {ideal x, ideal y}) == {false, true});
assert(sumsUp(ideal(x*y), {ideal x, ideal y}) and multiplicitiesAlong(ideal(x*y), {ideal x, ideal y}) == {1, 1});

-- the field x d/dx - y d/dy vanishes nowhere on x*y = 1, and at the origin of x*y = 0
field = {{0, 0, 1}, {1, 1, -1}};
assert(not dependentFields(ideal(x*y - 1, z), {field}) and dependentFields(ideal(x*y, z), {field}));

S = QQ[s,t];
draw = numberStream {2, -1, 1, 3, -2, 1, 0, 1};
assert(residuePoint(ideal(s^2 - 2, t - s - 1), draw) == {{-2, 0, 1}, {{0, 1}, {1, 1}}});
-- a point whose residue field no variable generates
p = residuePoint(ideal(s^2 - 2, t^2 - 3), draw);
assert(#(first p) == 5);

-- s*t = 1: the hyperbola is one orbit of a torus; s = 1 is one of its points
weightList = torusWeights(matrix {{s*t}}, matrix {{1_QQ}}, ideal 0_S);
assert(#weightList == 2 and weightList#0 == -(weightList#1));
assert(torusSection(ideal(s*t - 1), weightList, draw) == ideal(s - 1, t - 1));
assert(#sectionPrimes(ideal(s^2 - t), draw) > 0 and sectionPrimes(ideal 1_S, draw) == {});
(points, allFound) = distancePrimes(ideal(s^2 + t^2 - 1), draw);
assert(allFound and #points > 0 and all(points, m -> dim m == 0 and isSubset(ideal(s^2 + t^2 - 1), m)));
-- the hyperbola has two real components: a polynomial that is negative at 0 and of even degree has roots on both sides
(points, allFound) = distancePrimes(ideal(s*t - 1), draw);
assert(allFound and all(points, m -> dim m == 0 and isSubset(ideal(s*t - 1), m)));
f = product(points, m -> (eliminate(t, m))_0);
assert(even first degree f and valuesAt(f, {0, 0}) * leadCoefficient f < 0);
assert(isMultihomogeneous({s*t, s*t}, ideal 0_S, {{0}, {1}}));
assert(not isMultihomogeneous({s*t + s}, ideal 0_S, {{0}, {1}}));
print "complete";
