-- Tests of rings.m2. Run them with M2 --script rings-tests.m2; they end with the word complete.
needs "./rings.m2";

S = variableRing(QQ, 3, Degrees => {1, 1, 2});
assert(numgens S == 3 and first degree S_2 == 2 and toString S_1 == "z_1" and class z === Symbol);
T = variableRing(ZZ/5, 2, VariableBaseName => "u", MonomialOrder => {1, 1});
assert(toString T_1 == "u_1" and leadTerm(T_0 + T_1^3) == T_0);
assert(numgens variableRing(QQ, 0) == 0);

assert(numberMatrix(ZZ/5, {{1/2, 7}}) == matrix {{3_(ZZ/5), 2_(ZZ/5)}});
assert(numColumns numberMatrix(QQ, {}, Columns => 4) == 4 and numRows numberMatrix(QQ, {{}, {}}) == 2);

f = S_0^2 - 3*S_1*S_2;
assert(valuesAt(f, {1, 1/3, 2}) == -1_QQ);
assert(valuesAt(matrix {{f, S_2}}, {1, 1, 1}) == matrix {{-2_QQ, 1_QQ}});
Q = S/ideal(S_0 - S_1);
assert(valuesAt(Q_0 + Q_2, {2, 2, 3}) == 5_QQ);
assert(vanishesAt(ideal f, {3, 3, 1}) and not vanishesAt(ideal f, {1, 1, 1}));
assert(coefficientsAt(f, {{0,1,1}, {1,0,0}, {2,0,0}}) == {-3_QQ, 0_QQ, 1_QQ});

assert(ideal groebnerMatrix ideal(S_0^2 - S_1, S_0^2) == ideal(S_1, S_0^2));
assert(numColumns groebnerMatrix ideal(T_0 - T_1, T_0 + T_1) == 2);
assert(sortedBy(abs, {-3, 1, 2, -1}) == {1, -1, 2, -3});

-- the numbers of the caller come first; later ones stay in their range
draw = numberStream {2, -1, 3};
assert(apply(3, i -> draw()) == {2, -1, 3});
assert(apply(3, i -> draw()) == {1, 2, -3});
assert(all(apply(100, i -> draw()), n -> abs n <= 3));
print "complete";
