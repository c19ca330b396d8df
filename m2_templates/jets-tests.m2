-- Tests of jets.m2. Run them with M2 --script jets-tests.m2; they end with the word complete.
needs "./jets.m2";

KK = ZZ/101;
A = matrixOf(KK, {1, 2, 3, 4}, {2, 2});
B = matrixOf(KK, {0, 1, 1, 5}, {2, 2});
x = jet(A, {B, null});
constant = constantLike(A, x);
agree = (M, N) -> matrix M == matrix N;
assert(entriesOf A == {1_KK, 2_KK, 3_KK, 4_KK} and entriesOf {1, 2} == {1, 2});
assert(agree(withEntries(A, entriesOf B), B) and withEntries({0, 0}, {1, 2}) == {1, 2});

-- the product rule; null stands for 0
square = x * x;
assert(agree(square#0, A * A) and agree(square#1#0, A * B + B * A) and square#1#1 === null);
assert(agree((x * constant)#1#0, B * A) and agree((constant * x)#1#0, A * B));
assert(agree((bilinearly((M, N) -> M * N, x, x))#0, square#0));
assert(agree((x + constant)#1#0, B) and agree((x - x)#1#0, B - B));
assert(agree((transpose x)#1#0, transpose B) and agree((linearly(M -> 3 * M, x))#1#0, 3 * B));
assert(entriesOf (x^{1})#1#0 == {1_KK, 5_KK} and entriesOf (x_{1})#0 == {2_KK, 4_KK});

-- powers of entries, and of lists
cube = entrywisePower(x, 3);
assert(entriesOf cube#0 == {1_KK, 8_KK, 27_KK, 64_KK});
assert(entriesOf cube#1#0 == {0_KK, 12_KK, 27_KK, 3 * 16 * 5_KK});
assert((entrywisePower(jet({2_KK}, {{5_KK}}), 2))#1#0 == {20_KK});
assert((entrywisePower(jet({0_KK}, {{5_KK}}), 0))#1#0 == {0_KK});

-- the chain rule for polynomials
S = KK[s,t];
y = polynomialsAt(matrix {{s*t, s^2 + t}}, jet(matrixOf(KK, {2, 3}, {1, 2}), {matrixOf(KK, {1, 10}, {1, 2})}));
assert(entriesOf y#0 == {6_KK, 7_KK} and entriesOf y#1#0 == {23_KK, 14_KK});

-- constants beside jets; networks with derivatives: the product of two matrices and an input
assert(agree((constantBeside(matrix {{1/2, 0}, {0, 1}}, x) * x)#1#0, matrix {{0_KK, 1/2_KK}, {1_KK, 5_KK}}));
twoLayers = (W, X) -> W#1 * W#0 * X;
column = matrixOf(KK, {1, 1}, {2, 1});
moved = networkJet(twoLayers, {A, A}, {{B, null}, {null, B}}, column);
assert(moved#0 == entriesOf(A * A * column) and moved#1 == {entriesOf(A * B * column), entriesOf(B * A * column)});
assert(#(first weightDirections(KK, {{2, 2}, {2, 2}})) == 8);
-- 2 x 2 matrices of rank 2: the image has dimension 4, which two inputs show and a third confirms
inputs = {column, matrixOf(KK, {1, 2}, {2, 1}), matrixOf(KK, {3, 1}, {2, 1}), matrixOf(KK, {5, 1}, {2, 1})};
assert(first jacobianRank(twoLayers, {A, A}, inputs) == 4);
assert(first jacobianRank((W, X) -> first W, {A}, {null}) == 4);
print "complete";
