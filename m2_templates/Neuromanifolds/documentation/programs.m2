-- Documentation and tests of programs.m2.

doc ///
  Key
    evaluateProgram
    (evaluateProgram, List, List, List, Thing)
  Headline
    evaluate a list of instructions on jets
  Usage
    evaluateProgram(instructions, outputs, W, X)
  Inputs
    instructions:List
      of lists: operation, shape, operands, constants
    outputs:List
      of indices of instructions
    W:List
      of jets with one row over a field, the weights; at least one
    X:Thing
      a @TO Jet@ with one row, all inputs; @TO null@ if there are none
  Outputs
    :Jet
      all outputs, in one list
  Description
    Text
      An array is the list of its entries in row-major order. Operands are indices of earlier instructions, and
      rational numbers are pairs of integers. The operations are weight and input, which come first, add, multiply,
      reshape, scale (its constant is a rational number), power (the exponent), constant (the entries), gather
      (indices in the list of entries), concatenate (the axis), slice (start, count, increment for each axis) and
      einsum (the letters $0, 1, \dots$ of each operand and of the result). The square of the product of a weight
      and an input:
    Example
      program = {{"weight", {1}, {}, {}}, {"input", {1}, {}, {}},
        {"multiply", {1}, {0, 1}, {}}, {"power", {1}, {2}, {2}}};
      W = jet(matrixOf(QQ, {2}, {1, 1}), {matrixOf(QQ, {1}, {1, 1})});
      X = jet(matrixOf(QQ, {3}, {1, 1}), {null});
      evaluateProgram(program, {3}, {W}, X)
  SeeAlso
    networkJet
///

TEST ///
debug needsPackage "Neuromanifolds"
KK = ZZ/101;
x = jet(apply({1, 2, 3, 4, 5, 6}, c -> c_KK), {apply({1, 0, 0, 0, 0, 0}, c -> c_KK), null});
residues = y -> apply(y#0, c -> lift(c, ZZ));
assert(numberFrom(KK, {1, 2}) == 51_KK);
assert(strides {2, 3} == {3, 1} and boxIndices(1, {2, 2}, {3, 1}) == {1, 2, 4, 5});
assert(residues selected({5, 0}, x) == {6, 1});
-- x as a 2 x 3 array: repeated, transposed, summed
assert(residues broadcast(selected({0, 1, 2}, x), {3}, {2, 3}) == {1, 2, 3, 1, 2, 3});
assert(residues contracted(x, {2, 3}, {0, 1}, {1, 0}) == {1, 4, 2, 5, 3, 6});
assert(residues contracted(x, {2, 3}, {0, 1}, {0}) == {6, 15});
assert((matrixProducts(1, 2, 1))({1_KK, 2_KK}, {3_KK, 4_KK}) == {11_KK});
-- the product of x and its transpose, and its derivative
gram = einsum(x, x, {{2, 3}, {2, 3}}, {{0, 1}, {2, 1}, {0, 2}});
assert(residues gram == {14, 32, 32, 77 - 101} and gram#1#0 == {2_KK, 4_KK, 4_KK, 0_KK} and gram#1#1 === null);
-- a product for each row: the squares of the lengths of the rows
assert(residues einsum(x, x, {{2, 3}, {2, 3}}, {{0, 1}, {0, 1}, {0}}) == {14, 77 - 101});
assert(residues appended(x, x) == {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
assert(residues concatenated({x, x}, {{2, 3}, {2, 3}}, 1) == {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
assert(residues executed(KK, {"slice", {2, 2}, {0}, {{0, 2, 1}, {0, 2, 2}}}, {x}, {{2, 3}}) == {1, 3, 4, 6});
assert((executed(KK, {"scale", {6}, {0}, {{1, 2}}}, {x}, {{6}}))#0 == apply(6, k -> (k + 1)_KK / 2));

-- (W x + 1)^2 for a 1 x 2 weight and an input with two entries
program = {{"weight", {1, 2}, {}, {}}, {"input", {2}, {}, {}}, {"constant", {1}, {}, {{1, 1}}},
    {"einsum", {1}, {0, 1}, {{0, 1}, {1}, {0}}}, {"add", {1}, {3, 2}, {}}, {"power", {1}, {4}, {2}}};
assert(sizesOf(program, "weight") == {2} and sizesOf(program, "input") == {2});
W = jet(matrixOf(KK, {1, 2}, {1, 2}), {matrixOf(KK, {0, 1}, {1, 2})});
X = constantLike(matrixOf(KK, {3, 4}, {1, 2}), W);
y = evaluateProgram(program, {5}, {W}, X);
assert(y#0 == {144_KK} and y#1#0 == {96_KK});
///
