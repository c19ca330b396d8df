-- Tests of networks.m2. Run them with M2 --script networks-tests.m2; they end with the word complete.
needs "./networks.m2";

assert(splitList({1, 2, 3, 4, 5}, {{1, 2}, {3, 1}}) == {{1, 2}, {3, 4, 5}});
assert(symmetricPairs 2 == {{0, 0}, {0, 1}, {1, 1}});
assert(inputMonomials(2, {1, 2}) == {{1, 0}, {0, 1}, {2, 0}, {1, 1}, {0, 2}});
-- x_(1,1) x_(2,1)^2, x_(1,1) x_(2,1) x_(2,2), ...
assert(take(segreMonomials(2, 2), 2) == {{1, 0, 2, 0}, {1, 0, 1, 1}} and #segreMonomials(2, 3) == 6);
assert(try (segreMonomials(2, 1); false) else true);

W = weightMatrices(QQ, {{2, 2}, {1, 2}});
R = ring first W;
assert(numgens R == 6 and W#0 == matrix {{R_0, R_1}, {R_2, R_3}} and W#1 == matrix {{R_4, R_5}});
B = weightMatrices(ZZ/101, {{2, 2}, {1, 2}}, RankBounds => {{0, 1}});
assert(det B#0 == 0 and ring B#1 === ring B#0);
assert(instance(ring first weightMatrices(QQ, {{2, 2}}, RankBounds => {{0, 2}}), PolynomialRing));

-- a perceptron with one hidden layer of two neurons and squares: c_0 = a_0^2 u + ... (u = w_4, v = w_5)
perceptron = (V, x) -> V#1 * entrywisePower(V#0 * x, 2);
Y = genericOutput(perceptron, W, {2, 1});
c = coefficientCoordinates(Y, inputMonomials(2, {2}));
assert(first entries c == {R_0^2*R_4 + R_2^2*R_5, 2*R_0*R_1*R_4 + 2*R_2*R_3*R_5, R_1^2*R_4 + R_3^2*R_5});

-- one layer of attention: the coordinates of Proposition A.5
attention = (V, X) -> V#1 * X * transpose X * V#0 * X;
s = coefficientCoordinates((genericOutput(attention, W, {2, 2}))_{0}, segreMonomials(2, 2));
assert(first entries s == {R_0*R_4, R_0*R_5 + R_2*R_4, R_2*R_5, R_1*R_4, R_1*R_5 + R_3*R_4, R_3*R_5});

assert(constantBeside(matrix {{1/2}}, matrix {{1_(ZZ/5)}}) == matrix {{3_(ZZ/5)}});
assert(polynomialsAt(matrix {{R_0*R_1, R_5}}, matrix {{2, 3, 0, 0, 0, 7}} ** QQ) == matrix {{6_QQ, 7_QQ}});

-- the boundary of one layer of lightning self-attention, d = 2 and d' = 1: h (x) q (x) (square of a linear form)
B = rankOneTensors(QQ, 1, 2);
assert(dim B == 3 and degree B == 4 and vanishesAt(B, {1,0,0,0,0,0}) and not vanishesAt(B, {1,0,-1,0,0,0}));
A = rankOneTensors(QQ, 1, 2, QuadricRank => 2);
assert(dim A == 4 and degree A == 3 and vanishesAt(A, {1,0,-1,0,0,0}));
print "complete";
