-- Documentation and tests of images.m2.

doc ///
  Key
    coneOver
    (coneOver, Matrix)
    [coneOver, IsCone]
    IsCone
  Headline
    coordinates whose image has a cone as its closure
  Usage
    coneOver f
  Inputs
    f:Matrix
      with one row, the coordinates of a polynomial map
    IsCone => Boolean
      whether the closure of the image of @TT "f"@ is a cone
  Outputs
    :Matrix
      with one row
  Description
    Text
      If the closure is a cone, it does not change: @TT "f"@ is returned if its coordinates are forms of one
      positive degree, and multiplied by a new variable otherwise. If it is not, the coordinates and one more, the
      constant 1, are multiplied by a new variable: they parametrize the affine cone over the image.
    Example
      R = QQ[s];
      coneOver(matrix {{s, s^2}}, IsCone => false)
  SeeAlso
    imageIdeal
///

doc ///
  Key
    spanBasis
    (spanBasis, Matrix)
  Headline
    coordinates that form a basis of the linear span of all of them
  Usage
    spanBasis f
  Inputs
    f:Matrix
      with one row, the coordinates of a polynomial map
  Outputs
    :List
      of indices; coordinates with few terms are preferred
  Description
    Example
      R = QQ[s,t];
      spanBasis matrix {{s^2 + t^2, s^2, s*t, t^2}}
///

doc ///
  Key
    imageIdeal
    (imageIdeal, Matrix)
  Headline
    the ideal of the closure of the image of a polynomial map
  Usage
    imageIdeal f
  Inputs
    f:Matrix
      with one row of forms of one degree, over a polynomial ring or a quotient of one; see @TO coneOver@
  Outputs
    :Ideal
      in a new ring, the kernel of the ring map $z_i \mapsto f_i$
  Description
    Text
      Source and target are graded compatibly, which makes @TO kernel@ fast.
    Example
      R = QQ[s,t];
      imageIdeal matrix {{s^3, s^2*t, s*t^2, t^3}}
  SeeAlso
    parametrizedIdeal
///

doc ///
  Key
    parametrizedIdeal
    (parametrizedIdeal, Ring, Matrix)
  Headline
    the ideal of the closure of an image, in a given ring
  Usage
    parametrizedIdeal(S, f)
  Inputs
    S:Ring
      whose variables stand for the coordinates
    f:Matrix
      with one row of forms, of degrees that may differ
  Outputs
    :Ideal
      in @TT "S"@
  Description
    Example
      R = QQ[s];
      parametrizedIdeal(QQ[x,y], matrix {{s^2, s^3}})
  SeeAlso
    imageIdeal
///

doc ///
  Key
    hVector
    (hVector, Ideal)
  Headline
    the h-vector of a homogeneous ideal
  Usage
    hVector I
  Inputs
    I:Ideal
      homogeneous
  Outputs
    :List
      of the coefficients of $h$ in the Hilbert series $h(T)/(1 - T)^{dim I}$
  Description
    Example
      R = QQ[x,y,z,w];
      hVector minors(2, matrix {{x, y, z}, {y, z, w}})
///

doc ///
  Key
    initialIdeal
    (initialIdeal, Ideal)
    [initialIdeal, Strategy]
  Headline
    the ideal of leading monomials
  Usage
    initialIdeal I
  Inputs
    I:Ideal
    Strategy => String
      of @TO groebnerBasis@: "MGB" for sparse, "F4" for dense generators
  Outputs
    :MonomialIdeal
  Description
    Example
      R = QQ[x,y];
      initialIdeal ideal(x^2 - y, x*y)
///

doc ///
  Key
    finiteLength
    (finiteLength, Ideal)
  Headline
    the dimension of a quotient ring as a vector space
  Usage
    finiteLength I
  Inputs
    I:Ideal
      in a polynomial ring
  Outputs
    :ZZ
      0 for the unit ideal; @TO null@ if the dimension is not finite
  Description
    Example
      R = QQ[x,y];
      finiteLength ideal(x^2, y^3)
///

doc ///
  Key
    distinctValues
    (distinctValues, Ideal, RingElement)
  Headline
    the number of values of a polynomial at finitely many points
  Usage
    distinctValues(I, y)
  Inputs
    I:Ideal
      whose quotient ring has finite dimension
    y:RingElement
  Outputs
    :ZZ
      the number of values of @TT "y"@ at the zeros of @TT "I"@ over the algebraic closure
  Description
    Text
      In characteristic $p$ it is exact if the dimension is below $p$, and a lower bound otherwise.
    Example
      R = QQ[x,y];
      distinctValues(ideal(x^2 - 1, y^2 - 1), x + y)
///

doc ///
  Key
    sectionLength
    (sectionLength, Ideal, Matrix)
  Headline
    the length of a linear section
  Usage
    sectionLength(I, M)
  Inputs
    I:Ideal
    M:Matrix
      whose columns span a linear space
  Outputs
    :ZZ
      the length of the restriction of @TT "I"@ to that space; @TO null@ if it is zero or not finite
  Description
    Text
      For homogeneous @TT "I"@ and a space of dimension @TT "codim I"@ whose section is finite, it equals @TT
      "degree I"@ if and only if the quotient ring is Cohen-Macaulay. Two skew lines are not:
    Example
      R = QQ[x,y,z,w];
      sectionLength(intersect(ideal(x, y), ideal(z, w)), matrix {{1, 2}, {3, 5}, {7, 11}, {13, 17}} ** QQ)
  SeeAlso
    isUnmixed
///

doc ///
  Key
    isUnmixed
    (isUnmixed, Ideal)
  Headline
    whether all associated primes have the same dimension
  Usage
    isUnmixed I
  Inputs
    I:Ideal
      proper, in a polynomial ring over a field
  Outputs
    :Boolean
  Description
    Text
      The test is @TT "codim Ext^i(S/I, S) > i"@ for all $i$ larger than the codimension of $I$: Eisenbud, Huneke,
      Vasconcelos, {\it Direct methods for primary decomposition}, Theorem 1.1.
    Example
      R = QQ[x,y];
      isUnmixed ideal(x^2, x*y)
///

doc ///
  Key
    restrictedMap
    (restrictedMap, Matrix, List, List)
  Headline
    a polynomial map where some variables are constant
  Usage
    (g, M) = restrictedMap(f, L, fixed)
  Inputs
    f:Matrix
      with one row, over a polynomial ring
    L:List
      a point, one number for each variable
    fixed:List
      of indices of the variables that keep their values in @TT "L"@
  Outputs
    g:Matrix
      over the ring of the other variables
    M:List
      the values of the other variables at @TT "L"@
  Description
    Example
      R = QQ[s,t];
      restrictedMap(matrix {{s^2, s*t, t^2}}, {2, 5}, {0})
///

TEST ///
debug needsPackage "Neuromanifolds"
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
///
