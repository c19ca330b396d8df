-- Documentation and tests of jets.m2.

doc ///
  Key
    Jet
    jet
    (jet, Thing, List)
    (symbol *, Jet, Jet)
    (symbol +, Jet, Jet)
    (symbol -, Jet)
    (symbol -, Jet, Jet)
    (transpose, Jet)
    (symbol ^, Jet, List)
    (symbol _, Jet, List)
  Headline
    values with derivatives in several directions
  Usage
    jet(A, L)
  Inputs
    A:Thing
      a list or a mutable matrix
    L:List
      of derivatives of the form of @TT "A"@; @TO null@ stands for 0
  Outputs
    :Jet
  Description
    Text
      The jet means $A + \epsilon B$ with $\epsilon^2 = 0$, for each derivative $B$. Sums, products, transposes,
      rows @TT "x^{i}"@ and columns @TT "x_{i}"@ are defined.
    Example
      x = jet(mutableMatrix {{1, 2}, {3, 4}}, {mutableMatrix {{0, 1}, {1, 0}}, null});
      y = x * x;
      matrix first y#1
  SeeAlso
    networkJet
///

doc ///
  Key
    linearly
    (linearly, Function, Jet)
  Headline
    a linear function of a jet
  Usage
    linearly(f, x)
  Inputs
    f:Function
      linear
    x:Jet
  Outputs
    :Jet
  Description
    Example
      linearly(v -> v_{1, 0}, jet({1, 2}, {{3, 4}}))
  SeeAlso
    bilinearly
///

doc ///
  Key
    bilinearly
    (bilinearly, Function, Jet, Jet)
  Headline
    a bilinear function of two jets
  Usage
    bilinearly(f, x, y)
  Inputs
    f:Function
      bilinear, of two arguments
    x:Jet
    y:Jet
  Outputs
    :Jet
      by the product rule
  Description
    Example
      bilinearly((v, w) -> apply(v, w, times), jet({2}, {{1}}), jet({3}, {null}))
  SeeAlso
    linearly
///

doc ///
  Key
    matrixOf
    (matrixOf, Ring, List, List)
  Headline
    a mutable matrix with given entries
  Usage
    matrixOf(KK, L, size)
  Inputs
    KK:Ring
    L:List
      of the entries, row by row
    size:List
      the number of rows and of columns
  Outputs
    :MutableMatrix
  Description
    Example
      matrixOf(ZZ/101, {1, 2, 3, 4}, {2, 2})
///

doc ///
  Key
    networkJet
    (networkJet, Function, List, List, Thing)
  Headline
    a network and its derivatives, by numbers
  Usage
    (values, derivatives) = networkJet(F, W, D, X)
  Inputs
    F:Function
      the network, a function of a list of weights and an input
    W:List
      the weights, mutable matrices over a field
    D:List
      for each weight the list of its derivatives, one for each direction; @TO null@ stands for 0
    X:Thing
      the input, a mutable matrix; @TO null@ for a map without inputs
  Outputs
    values:List
      of the entries of the output, row by row
    derivatives:List
      of such lists, one for each direction
  Description
    Example
      W = {matrixOf(QQ, {1, 2}, {1, 2})};
      X = matrixOf(QQ, {3, 4}, {2, 1});
      networkJet((W, x) -> entrywisePower(W#0 * x, 2), W, {{matrixOf(QQ, {1, 0}, {1, 2})}}, X)
  SeeAlso
    jacobianRank
///

doc ///
  Key
    jacobianRank
    (jacobianRank, Function, List, List)
  Headline
    a lower bound of the dimension of the image of a network
  Usage
    (r, used) = jacobianRank(F, W, inputs)
  Inputs
    F:Function
      the network, a function of a list of weights and an input
    W:List
      the weights, mutable matrices over a field
    inputs:List
      of mutable matrices, which must be general
  Outputs
    r:ZZ
      the rank of the derivatives of the outputs at the inputs by the entries of all weights
    used:ZZ
      how many inputs were used: one more adds no rank
  Description
    Example
      F = (W, x) -> W#1 * entrywisePower(W#0 * x, 2);
      W = {matrixOf(ZZ/101, {1, 2, 3, 5}, {2, 2}), matrixOf(ZZ/101, {2, 7}, {1, 2})};
      jacobianRank(F, W, apply(6, k -> matrixOf(ZZ/101, {1, k}, {2, 1})))
  SeeAlso
    networkJet
///

TEST ///
debug needsPackage "Neuromanifolds"
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
///
