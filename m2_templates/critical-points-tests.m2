-- Tests of critical-points.m2. Run them with M2 --script critical-points-tests.m2; they end with the word complete.
needs "./critical-points.m2";

KK = ZZ/32003;
R = KK[a,b];
S = KK[s,t];
G = groebnerMatrix ideal(s^2 - t, t^2 - 1);
assert(dimensionBy G == 0 and degreeBy G == 4 and dimensionBy matrix {{1_S}} == -1 and degreeBy matrix {{1_S}} == 0);
assert((chartMap(S, R, {1, 2}, numberMatrix(KK, {{3, 4}}))) (a + b) == 7*s + 3);
assert((chartMap(S, R, {1, 2}, numberMatrix(KK, {}, Columns => 2))) a == 1);

-- the distance from a general point to the parabola has three critical points, that to a circle two
y = matrix {{s, s^2}};
J = matrix {{1_S, 2*s}, {0, 0}};
I = criticalIdeal(y, J, id_(S^2), matrix {{3_S, 7_S}}) + ideal t;
assert(degreeBy groebnerMatrix I == 3);
Z = KK[x,z];
C = conormalIdeal(matrix {{z - x^2}}, matrix {{1_KK}}, id_(KK^2), matrix {{3_KK, 7_KK}});
assert(degreeBy groebnerMatrix C == 3);
C = conormalIdeal(matrix {{x^2 + z^2 - 1}}, matrix {{1_KK}}, id_(KK^2), matrix {{3_KK, 7_KK}});
assert(degreeBy groebnerMatrix C == 2);

-- the rows of {{s, t}, {t, s}} are dependent where s^2 = t^2
M = matrix {{s, t}, {t, s}};
assert(radical dependencyLocus(ideal 0_S, M, {5, 7}) == ideal(s^2 - t^2));
assert(dimensionBy groebnerMatrix kernelPairs(ideal(s - 1, t - 2), M, {5, 7}) == -1);
assert(dimensionBy groebnerMatrix kernelPairs(ideal(s - 1, t - 1), M, {5, 7}) == 0);
assert(ideal saturateByCombination(ideal(s^2*t, s*t^2), ideal(s, s*t), 11) == ideal t);
-- the coefficients differ: with equal ones s and -s would cancel
assert(ideal saturateByCombination(ideal(s*t), ideal(s, -s, t), 11) == ideal(s*t));

assert(leastRelation(G, s, 10) == {-1, 0, 0, 0, 1} and leastRelation(G, s, 3) === null);
assert(leastRelation(matrix {{s, t}}, s + 1, 5) == {-1, 1} and leastRelation(matrix {{1_S}}, s, 5) == {1});
overQQ = QQ[u,v];
assert(leastRelation(groebnerMatrix ideal(2*u^2 - 3, v), u, 5) == {-3/2, 0, 1});

-- the node of x*z = 0: points mapped to it have dependent gradients
node = dependentGradients(ideal(s - t), matrix {{s, t}}, matrix {{x*z}}, matrix {{1_KK}}, {3});
assert(dimensionBy groebnerMatrix node == 0 and degreeBy groebnerMatrix node == 1);

B = algebraBasis G;
assert(first entries B == {1, t, s, s*t} or first entries B == {1, s, t, s*t});
assert(numColumns algebraBasis matrix {{1_S}} == 0);
assert(coordinateVectors(G, matrix {{1_S, s, t, s*t}}, matrix {{s^3, t^2}}) == {{0, 0, 0, 1_KK}, {1_KK, 0, 0, 0}});
print "complete";
