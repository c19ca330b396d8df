-- Documentation and tests of rings.m2.

doc ///
  Key
    variableRing
    (variableRing, Ring, ZZ)
    [variableRing, Degrees]
    [variableRing, VariableBaseName]
    [variableRing, MonomialOrder]
  Headline
    a polynomial ring whose variables have an index
  Usage
    variableRing(KK, n)
  Inputs
    KK:Ring
    n:ZZ
    Degrees => List
      the degrees of the variables; by default all are 1
    VariableBaseName => Symbol
      or a string, instead of @TT "z"@
    MonomialOrder => List
      as for a polynomial ring
  Outputs
    :PolynomialRing
      in the variables $z_0, \dots, z_{n-1}$
  Description
    Text
      No global symbol gets a value.
    Example
      variableRing(QQ, 3)
      variableRing(ZZ/5, 2, VariableBaseName => "u", Degrees => {1, 2})
///

doc ///
  Key
    numberMatrix
    (numberMatrix, Ring, List)
    [numberMatrix, Columns]
    Columns
  Headline
    a matrix of integers or fractions over a ring
  Usage
    numberMatrix(KK, rows)
  Inputs
    KK:Ring
    rows:List
      the rows, lists of integers or fractions
    Columns => ZZ
      the number of columns, needed only if there are no rows
  Outputs
    :Matrix
      over @TT "KK"@
  Description
    Example
      numberMatrix(ZZ/5, {{1/2, 7}})
      numberMatrix(QQ, {}, Columns => 4)
///

doc ///
  Key
    valuesAt
    (valuesAt, Thing, List)
  Headline
    the value of a polynomial, a matrix or an ideal at a point
  Usage
    valuesAt(f, L)
  Inputs
    f:Thing
      a polynomial, a matrix or an ideal over a polynomial ring or a quotient of one
    L:List
      the coordinates of a point: integers, fractions or elements of the field
  Outputs
    :Thing
      over the field
  Description
    Example
      R = QQ[x,y];
      valuesAt(matrix {{x*y, x + y}}, {2, 1/3})
  SeeAlso
    vanishesAt
///

doc ///
  Key
    vanishesAt
    (vanishesAt, Ideal, List)
  Headline
    whether an ideal vanishes at a point
  Usage
    vanishesAt(I, L)
  Inputs
    I:Ideal
    L:List
      the coordinates of a point
  Outputs
    :Boolean
  Description
    Example
      R = QQ[x,y];
      vanishesAt(ideal(x^2 - y), {3, 9})
  SeeAlso
    valuesAt
///

doc ///
  Key
    groebnerMatrix
    (groebnerMatrix, Ideal)
  Headline
    a Groebner basis as a matrix, by F4 over finite fields
  Usage
    groebnerMatrix I
  Inputs
    I:Ideal
  Outputs
    :Matrix
      with one row, a Groebner basis of @TT "I"@, which Macaulay2 recognizes as one
  Description
    Example
      R = ZZ/101[x,y];
      groebnerMatrix ideal(x^2 - y, x*y - 1)
///

doc ///
  Key
    numberStream
    (numberStream, List)
  Headline
    a function that returns the numbers of a list and then continues
  Usage
    draw = numberStream L
  Inputs
    L:List
      integers, chosen at random by the caller
  Outputs
    draw:Function
      without arguments
  Description
    Text
      The first numbers are those of @TT "L"@. Then the $n$-th number is the sum of the two that came $k$ and $k -
      1$ before it, where $k$ is the length of @TT "L"@, reduced to the range of @TT "L"@: a lagged Fibonacci
      generator. So results do not depend on the random numbers of a version of Macaulay2.
    Example
      draw = numberStream {2, -1, 3};
      apply(6, i -> draw())
///

TEST ///
debug needsPackage "Neuromanifolds"
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
///
