-- Documentation and tests of networks.m2.

doc ///
  Key
    splitList
    (splitList, List, List)
  Headline
    cut a list into consecutive lists
  Usage
    splitList(L, sizes)
  Inputs
    L:List
    sizes:List
      of sizes $\{m, n\}$ of matrices
  Outputs
    :List
      of lists of $m n$ elements, one for each size
  Description
    Example
      splitList({1, 2, 3, 4, 5}, {{1, 2}, {3, 1}})
///

doc ///
  Key
    weightMatrices
    (weightMatrices, Ring, List)
    [weightMatrices, RankBounds]
    RankBounds
  Headline
    the generic weights of a network
  Usage
    weightMatrices(KK, sizes)
  Inputs
    KK:Ring
    sizes:List
      of sizes $\{m, n\}$ of matrices
    RankBounds => List
      of pairs $\{k, a\}$: the ring is the quotient by the $(a+1)$-minors of the matrix with index $k$
  Outputs
    :List
      of matrices whose entries, row by row, are the variables $w_0, w_1, \dots$ of one ring
  Description
    Example
      weightMatrices(QQ, {{2, 2}, {1, 2}})
      describe ring first weightMatrices(QQ, {{2, 2}}, RankBounds => {{0, 1}})
///

doc ///
  Key
    genericOutput
    (genericOutput, Function, List, List)
  Headline
    the output of a network at the generic input
  Usage
    genericOutput(F, W, inputSize)
  Inputs
    F:Function
      the network, a function of a list of weights and an input matrix
    W:List
      the weights, matrices over one ring
    inputSize:List
      the number of rows and of columns of an input
  Outputs
    :Matrix
      over a polynomial ring in $x_0, x_1, \dots$, the entries of the input column by column
  Description
    Example
      F = (W, x) -> W#1 * entrywisePower(W#0 * x, 2);
      genericOutput(F, weightMatrices(QQ, {{1, 2}, {1, 1}}), {2, 1})
  SeeAlso
    coefficientCoordinates
///

doc ///
  Key
    inputMonomials
    (inputMonomials, ZZ, List)
  Headline
    exponents of the monomials of given degrees
  Usage
    inputMonomials(n, degreesOf)
  Inputs
    n:ZZ
      the number of variables
    degreesOf:List
  Outputs
    :List
      of exponents; those of one degree in descending lexicographic order
  Description
    Example
      inputMonomials(2, {1, 2})
///

doc ///
  Key
    segreMonomials
    (segreMonomials, ZZ, ZZ)
  Headline
    exponents of the monomials that determine a layer of lightning self-attention
  Usage
    segreMonomials(d, t)
  Inputs
    d:ZZ
      the width of a token
    t:ZZ
      the number of tokens, at least two
  Outputs
    :List
      of exponents of monomials in the entries of a $d \times t$ input: linear in the first token (column),
      quadratic in the second
  Description
    Text
      For one layer of lightning self-attention their coefficients in the first token's output determine the map:
      Henry, Marchetti, Kohn, {\it Geometry of lightning self-attention}, @HREF("https://arxiv.org/abs/2408.17221",
      "arXiv:2408.17221")@, Proposition A.5.
    Example
      segreMonomials(2, 2)
  SeeAlso
    rankOneTensors
///

doc ///
  Key
    coefficientCoordinates
    (coefficientCoordinates, Matrix, List)
  Headline
    the coordinates of a network: coefficients of its outputs
  Usage
    coefficientCoordinates(Y, L)
  Inputs
    Y:Matrix
      the output of a network, see @TO genericOutput@
    L:List
      of exponents, see @TO inputMonomials@
  Outputs
    :Matrix
      with one row, over the ring of the weights
  Description
    Example
      F = (W, x) -> W#1 * entrywisePower(W#0 * x, 2);
      Y = genericOutput(F, weightMatrices(QQ, {{2, 2}, {1, 2}}), {2, 1});
      coefficientCoordinates(Y, inputMonomials(2, {2}))
///

doc ///
  Key
    entrywisePower
    (entrywisePower, Matrix, ZZ)
    (entrywisePower, Jet, ZZ)
  Headline
    the power of each entry
  Usage
    entrywisePower(x, n)
  Inputs
    x:Matrix
      or a @TO Jet@
    n:ZZ
  Outputs
    :Thing
      of the type of @TT "x"@
  Description
    Example
      entrywisePower(matrix {{1, 2}, {3, 4}}, 2)
///

doc ///
  Key
    constantBeside
    (constantBeside, Matrix, Matrix)
    (constantBeside, Matrix, Jet)
  Headline
    a matrix of numbers over the ring of another matrix
  Usage
    constantBeside(A, x)
  Inputs
    A:Matrix
      of integers or fractions
    x:Matrix
      or a @TO Jet@
  Outputs
    :Thing
      the matrix @TT "A"@, for sums and products with @TT "x"@
  Description
    Text
      Networks that use it can be evaluated at matrices over any ring, and at jets.
    Example
      constantBeside(matrix {{1/2}}, matrix {{1_(ZZ/5)}})
///

doc ///
  Key
    polynomialsAt
    (polynomialsAt, Matrix, Matrix)
    (polynomialsAt, Matrix, Jet)
  Headline
    polynomials at a point over any ring
  Usage
    polynomialsAt(f, x)
  Inputs
    f:Matrix
      with one row of polynomials
    x:Matrix
      with one row, or a @TO Jet@ with one row
  Outputs
    :Thing
      of the type of @TT "x"@
  Description
    Example
      R = QQ[s,t];
      polynomialsAt(matrix {{s*t, s^2}}, matrix {{2, 3}} ** QQ)
///

doc ///
  Key
    rankOneTensors
    (rankOneTensors, Ring, ZZ, ZZ)
    [rankOneTensors, QuadricRank]
    QuadricRank
  Headline
    the ideal of products of two vectors and a quadric of bounded rank
  Usage
    rankOneTensors(KK, m, d)
  Inputs
    KK:Ring
      a field of characteristic other than 2
    m:ZZ
    d:ZZ
    QuadricRank => ZZ
      the bound of the rank of the quadric
  Outputs
    :Ideal
      of the tensors $h \otimes q \otimes S$ in $K^m \otimes K^d \otimes Sym^2 K^d$
  Description
    Text
      For one layer of lightning self-attention in the coordinates of @TO segreMonomials@ these are the boundary of
      the image (rank 1), and the image of the weights of rank one (rank 2).
    Example
      I = rankOneTensors(QQ, 1, 2);
      (dim I, degree I)
///

TEST ///
debug needsPackage "Neuromanifolds"
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
///
