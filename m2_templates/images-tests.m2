-- Tests of images.m2. Run them with M2 --script images-tests.m2; they end with the word complete.
needs "./images.m2";

-- the twisted cubic and, with a coordinate twice, its linear span
R = QQ[s,t];
cubic = matrix {{s^3, s^2*t, s*t^2, t^3}};
I = imageIdeal cubic;
assert(codim I == 2 and degree I == 3 and numgens I == 3);
assert(hVector I == {1, 2});
assert(spanBasis(cubic | matrix {{s^3 + t^3, 0}}) == {0, 1, 2, 3});
assert(coneOver cubic === cubic);

-- the parabola is not a cone: it is completed by the coordinate 1
parabola = coneOver(matrix {{s, s^2}}, IsCone => false);
assert(numColumns parabola == 3);
assert(spanBasis parabola == {0, 1, 2});
P = imageIdeal parabola;
assert(codim P == 1 and degree P == 2);
-- forms of different degrees are multiplied by a new variable
assert(numColumns coneOver matrix {{s, t^2}} == 2 and numgens ring coneOver matrix {{s, t^2}} == 3);

assert(spanBasis matrix {{0_R, 0_R}} == {});

-- a constant map: one point, as a cone one line
K = imageIdeal coneOver(matrix {{1_R, 2_R}}, IsCone => false);
assert(dim K == 1 and codim K == 2);
assert(numgens variableRing(QQ, 0) == 0);
-- coordinates of different degrees: the cuspidal cubic
U = QQ[u,v];
assert(parametrizedIdeal(U, matrix {{s^2, s^3}}) == ideal(u^3 - v^2));

-- over a finite field, and over a quotient ring: a symmetric 2x2 matrix of rank one
A = (ZZ/101)[a,b,c];
B = A/ideal(a*c - b^2);
V = imageIdeal matrix {{a_B, b_B, c_B}};
assert(degree V == 2 and spanBasis matrix {{a_B, b_B, a_B + b_B}} == {0, 1});

S = QQ[x,y,z,w];
assert(finiteLength ideal(x^2, y^3, z, w) == 6);
assert(finiteLength ideal(x, y) === null);
assert(finiteLength ideal 1_S == 0);
assert(initialIdeal(ideal(x^2 - y*z), Strategy => "MGB") == monomialIdeal(x^2));
assert(initialIdeal ideal 0_S == monomialIdeal 0_S);
assert(distinctValues(ideal(x^2*(x-1), y, z, w), x) == 2);
assert(distinctValues(ideal(x^2 - 1, y^2 - 1, z, w), x + y) == 3);
-- values with multiplicity, conjugate values, a single value, and no zeros at all
assert(distinctValues(ideal((x-1)^2*(x-3)^2, y, z, w), x) == 2);
assert(distinctValues(ideal(x^2 - 2, y, z, w), x) == 2);
assert(distinctValues(ideal((x-1)^3, y, z, w), x) == 1);
assert(distinctValues(ideal 1_S, x) == 0);

-- two skew lines: not Cohen-Macaulay, so a section is longer than the degree; a plane curve is
L = intersect(ideal(x, y), ideal(z, w));
M = matrix {{1,2},{3,5},{7,11},{13,17}} ** QQ;
assert(degree L == 2 and sectionLength(L, M) == 3);
assert(sectionLength(ideal(x, y^2), M) == 2);
assert(isUnmixed L and not isUnmixed ideal(x^2, x*y));
assert(try (isUnmixed ideal 0_B; false) else true);
assert(isUnmixed ideal 0_(ring x) and isUnmixed ideal gens ring x and not isUnmixed intersect(ideal x, ideal(y, z)));

(f, point) = restrictedMap(cubic, {2, 5}, {0});
assert(first entries f == {8, 4*(ring f)_0, 2*(ring f)_0^2, (ring f)_0^3} and point == {5});
assert(try (restrictedMap(matrix {{a_B, b_B}}, {1, 1, 1}, {0}); false) else true);
print "complete";
