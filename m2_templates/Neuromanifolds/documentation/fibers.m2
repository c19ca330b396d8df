-- Documentation and tests of fibers.m2.

doc ///
  Key
    stableIdeal
    (stableIdeal, Ideal, Function, ZZ, ZZ)
  Headline
    add equations to an ideal until they add nothing
  Usage
    (G, added, used, stable) = stableIdeal(I, more, k, n)
  Inputs
    I:Ideal
    more:Function
      of an index that returns a list of equations
    k:ZZ
      the first index
    n:ZZ
      the number of lists
  Outputs
    G:Matrix
      with one row, a Groebner basis
    added:List
      the equations that were added
    used:ZZ
      the number of lists used
    stable:Boolean
      whether the last lists added nothing
  Description
    Text
      Two lists are added at a time. So the equations of a fiber of a network come from its outputs at finitely many
      inputs.
    Example
      R = QQ[x,y];
      stableIdeal(ideal 0_R, k -> {x^2 - 1 - k*(x - 1)}, 0, 6)
///

doc ///
  Key
    pointWithValues
    (pointWithValues, Ideal, List)
    [pointWithValues, Limit]
    [pointWithValues, Candidates]
    Candidates
  Headline
    a point whose independent coordinates have given values
  Usage
    pointWithValues(P, L)
  Inputs
    P:Ideal
      prime
    L:List
      of lists with one value for each variable
    Limit => ZZ
      sections of a larger degree are left out
    Candidates => List
      of points; the first of them on the variety is taken before
  Outputs
    :List
      the coordinates, in the field; @TO null@ if none was found
  Description
    Text
      A largest set of independent variables gets its values from one list of @TT "L"@ after another, and the others
      are solved for.
    Example
      R = ZZ/101[x,y,z];
      pointWithValues(ideal(x^2 - y*z), {{2, 3, 5}, {3, 4, 9}})
///

doc ///
  Key
    conjugateCount
    (conjugateCount, Ideal, List)
    [conjugateCount, Limit]
  Headline
    the number of components over the algebraic closure
  Usage
    conjugateCount(P, L)
  Inputs
    P:Ideal
      prime
    L:List
      of points, among which a smooth rational one is looked for; it shows that there is one component
    Limit => ZZ
      the largest degree of the field extension of a finite field that is used
  Outputs
    :ZZ
      @TO null@ if it was not found
  Description
    Example
      R = ZZ/101[x,y];
      conjugateCount(ideal(x^2 - 2*y^2), {})
///

doc ///
  Key
    multiplicitiesAlong
    (multiplicitiesAlong, Ideal, List)
  Headline
    the multiplicities of an ideal along its minimal primes
  Usage
    multiplicitiesAlong(I, C)
  Inputs
    I:Ideal
    C:List
      of all its minimal primes
  Outputs
    :List
      of integers
  Description
    Example
      R = QQ[x,y];
      multiplicitiesAlong(ideal(x^2*y), {ideal x, ideal y})
  SeeAlso
    reducedAlong
///

doc ///
  Key
    reducedAlong
    (reducedAlong, Ideal, List)
  Headline
    whether an ideal is generically reduced along its minimal primes
  Usage
    reducedAlong(I, C)
  Inputs
    I:Ideal
    C:List
      of all its minimal primes
  Outputs
    :List
      of Booleans
  Description
    Example
      R = QQ[x,y];
      reducedAlong(ideal(x^2*y), {ideal x, ideal y})
  SeeAlso
    multiplicitiesAlong
///

doc ///
  Key
    dependentFields
    (dependentFields, Ideal, List)
  Headline
    whether linear vector fields are dependent at some point of a variety
  Usage
    dependentFields(I, M)
  Inputs
    I:Ideal
    M:List
      of vector fields, each a list of $\{i, j, c\}$: coordinate $i$ moves by $c$ times coordinate $j$
  Outputs
    :Boolean
  Description
    Text
      If the infinitesimal symmetries of a network are independent everywhere on a fiber, all orbits in it have the
      same dimension. The field $x \partial_x - y \partial_y$ vanishes nowhere on $x y = 1$:
    Example
      R = QQ[x,y];
      dependentFields(ideal(x*y - 1), {{{0, 0, 1}, {1, 1, -1}}})
///

doc ///
  Key
    residuePoint
    (residuePoint, Ideal, Function)
    [residuePoint, Limit]
  Headline
    a maximal ideal as a point over a number field
  Usage
    residuePoint(m, draw)
  Inputs
    m:Ideal
      maximal
    draw:Function
      without arguments that returns integers, such as @TO numberStream@
    Limit => ZZ
      the number of linear combinations of the variables that are tried, after the variables
  Outputs
    :List
      the coefficients of the minimal polynomial of a linear form, from the constant term up, and every variable as
      a list of coefficients of its powers; @TO null@ if none was found
  Description
    Example
      R = QQ[x,y];
      residuePoint(ideal(x^2 - 2, x*y - 1), numberStream {1, 2, 3})
///

doc ///
  Key
    torusWeights
    (torusWeights, Matrix, Matrix, Ideal)
  Headline
    the rescalings of variables that preserve a fiber
  Usage
    torusWeights(f, c, J)
  Inputs
    f:Matrix
      with one row, the coordinates of a polynomial map
    c:Matrix
      with one row of numbers, a point of the target
    J:Ideal
      of the source
  Outputs
    :List
      for each variable the list of its weights
  Description
    Text
      The torus consists of the rescalings that multiply each coordinate $f_i$ by a number, by 1 if $c_i$ is not 0,
      and each generator of @TT "J"@ by a number.
    Example
      R = QQ[s,t];
      torusWeights(matrix {{s*t}}, matrix {{1_QQ}}, ideal 0_R)
  SeeAlso
    torusSection
///

doc ///
  Key
    torusSection
    (torusSection, Ideal, List, Function)
  Headline
    linear equations that meet every orbit of a torus
  Usage
    torusSection(F, weightList, draw)
  Inputs
    F:Ideal
    weightList:List
      see @TO torusWeights@
    draw:Function
      without arguments that returns integers, such as @TO numberStream@
  Outputs
    :Ideal
      @TT "F"@ and linear equations that meet every orbit on its variety, real orbits in real points
  Description
    Example
      R = QQ[s,t];
      torusSection(ideal(s*t - 1), {{1}, {-1}}, numberStream {1, 2, 3})
///

doc ///
  Key
    sectionPrimes
    (sectionPrimes, Ideal, Function)
    [sectionPrimes, Limit]
    [sectionPrimes, MaxDegree]
    [sectionPrimes, Points]
    MaxDegree
    Points
  Headline
    maximal ideals where independent variables have random values
  Usage
    sectionPrimes(F, draw)
  Inputs
    F:Ideal
    draw:Function
      without arguments that returns integers, such as @TO numberStream@
    Limit => ZZ
      how many choices of values are made
    MaxDegree => ZZ
      points of larger degree are left out
    Points => ZZ
      how many points are enough
  Outputs
    :List
      of maximal ideals
  Description
    Example
      R = QQ[s,t];
      sectionPrimes(ideal(s^2 - t), numberStream {1, 4, 9}, Points => 2)
///

doc ///
  Key
    distancePrimes
    (distancePrimes, Ideal, Function)
    [distancePrimes, Limit]
  Headline
    points on every connected component of the real points of a variety
  Usage
    (points, complete) = distancePrimes(F, draw)
  Inputs
    F:Ideal
      over the rational numbers
    draw:Function
      without arguments that returns integers, such as @TO numberStream@
    Limit => ZZ
      how many points are tried as centers
  Outputs
    points:List
      of maximal ideals
    complete:Boolean
      whether all were found
  Description
    Text
      The distance from a random point has a minimum on each connected component. The critical points of the
      distance form a proper closed subset, which is intersected again until it is finite.
    Example
      R = QQ[s,t];
      distancePrimes(ideal(s^2 + t^2 - 1), numberStream {1, 2, 3})
///

doc ///
  Key
    fiberEquations
    (fiberEquations, Matrix, List, Ideal)
  Headline
    the equations of a fiber
  Usage
    fiberEquations(f, c, J)
  Inputs
    f:Matrix
      with one row, the coordinates of a polynomial map
    c:List
      a point of the target
    J:Ideal
      of the source
  Outputs
    :List
      of the polynomials $f_i - c_i$ and the generators of @TT "J"@
  Description
    Example
      R = QQ[s,t];
      fiberEquations(matrix {{s^2, s*t}}, {2, 1}, ideal 0_R)
///

doc ///
  Key
    fiberPoints
    (fiberPoints, Ideal, Function)
    [fiberPoints, Complete]
    [fiberPoints, MaxDegree]
    Complete
  Headline
    points of a variety over number fields
  Usage
    (points, complete) = fiberPoints(F, draw)
  Inputs
    F:Ideal
      over the rational numbers
    draw:Function
      without arguments that returns integers, such as @TO numberStream@
    Complete => Boolean
      whether every connected component of the real points must be met, see @TO distancePrimes@
    MaxDegree => ZZ
      points of larger degree are left out
  Outputs
    points:List
      see @TO residuePoint@
    complete:Boolean
      whether every connected component of the real points is met
  Description
    Example
      R = QQ[s,t];
      fiberPoints(ideal fiberEquations(matrix {{s^2, s*t}}, {2, 1}, ideal 0_R), numberStream {1, 2, 3})
///

doc ///
  Key
    hasClosedImage
    (hasClosedImage, Matrix, Ideal, List)
  Headline
    whether the image of a multihomogeneous map is closed
  Usage
    hasClosedImage(f, J, blocks)
  Inputs
    f:Matrix
      with one row, the coordinates of a polynomial map
    J:Ideal
      of the source
    blocks:List
      of lists of indices of variables, which contain each variable once
  Outputs
    :Boolean
      true if the coordinates are homogeneous of positive degree in each block and vanish only where a block is
      zero; false if this does not show that the image is closed
  Description
    Example
      R = QQ[s,t,u];
      hasClosedImage(matrix {{s*u, t*u}}, ideal 0_R, {{0, 1}, {2}})
///

TEST ///
debug needsPackage "Neuromanifolds"
R = (ZZ/101)[x,y,z];
assert(#independentPolynomials {x + y, x - y, x, 0_R} == 2 and independentPolynomials {0_R} == {});

-- equations x^2 - 1 and y - 1 arrive in the first two lists; two more add nothing
more = k -> {{x^2 - 1}, {y - x^2}, {x^2 - y}, {x^2*y - 1}, {z}}#k;
(G, added, used, stable) = stableIdeal(ideal 0_R, more, 0, 5);
assert(ideal G == ideal(x^2 - 1, y - 1) and #added == 2 and used == 4 and stable);
assert(not last stableIdeal(ideal 0_R, more, 0, 2));

quadric = ideal(x^2 - y*z);
assert(#independentVariables quadric == 2);
point = pointWithValues(quadric, {{2, 3, 5}, {3, 4, 9}});
assert(vanishesAt(quadric, point) and isSmoothPoint(quadric, point) and not isSmoothPoint(quadric, {0, 0, 0}));
assert(pointWithValues(ideal(x^2 - 2, y, z), {{1, 1, 1}}) === null);

-- 2 is not a square modulo 101, so x^2 - 2*y^2 is two conjugate planes
A = (ZZ/101)[a];
assert(isPrime ideal irreduciblePolynomial(A, 3));
assert(conjugateCount(ideal(x^2 - 2*y^2), {}) == 2 and conjugateCount(quadric, {}) == 1);
assert(conjugateCount(ideal(x^2 - 2, y, z), {}) == 2 and conjugateCount(quadric, {{0, 0, 1}}) == 1);
-- the origin is rational, but not a smooth point
assert(conjugateCount(ideal(x^2 - 2*y^2), {{0, 0, 0}}) == 2);

double = ideal(x^2*y);
assert(multiplicitiesAlong(double, {ideal x, ideal y}) == {2, 1});
assert(reducedAlong(double, {ideal x, ideal y}) == {false, true});
assert(sumsUp(ideal(x*y), {ideal x, ideal y}) and multiplicitiesAlong(ideal(x*y), {ideal x, ideal y}) == {1, 1});

-- the field x d/dx - y d/dy vanishes nowhere on x*y = 1, and at the origin of x*y = 0
field = {{0, 0, 1}, {1, 1, -1}};
assert(not dependentFields(ideal(x*y - 1, z), {field}) and dependentFields(ideal(x*y, z), {field}));

S = QQ[s,t];
draw = numberStream {2, -1, 1, 3, -2, 1, 0, 1};
assert(residuePoint(ideal(s^2 - 2, t - s - 1), draw) == {{-2, 0, 1}, {{0, 1}, {1, 1}}});
-- a point whose residue field no variable generates
p = residuePoint(ideal(s^2 - 2, t^2 - 3), draw);
assert(#(first p) == 5);

-- s*t = 1: the hyperbola is one orbit of a torus; s = 1 is one of its points
weightList = torusWeights(matrix {{s*t}}, matrix {{1_QQ}}, ideal 0_S);
assert(#weightList == 2 and weightList#0 == -(weightList#1));
assert(torusSection(ideal(s*t - 1), weightList, draw) == ideal(s - 1, t - 1));
assert(#sectionPrimes(ideal(s^2 - t), draw) > 0 and sectionPrimes(ideal 1_S, draw) == {});
(points, allFound) = distancePrimes(ideal(s^2 + t^2 - 1), draw);
assert(allFound and #points > 0 and all(points, m -> dim m == 0 and isSubset(ideal(s^2 + t^2 - 1), m)));
-- the hyperbola has two real components: a polynomial that is negative at 0 and of even degree has roots on both sides
(points, allFound) = distancePrimes(ideal(s*t - 1), draw);
assert(allFound and all(points, m -> dim m == 0 and isSubset(ideal(s*t - 1), m)));
f = product(points, m -> (eliminate(t, m))_0);
assert(even first degree f and valuesAt(f, {0, 0}) * leadCoefficient f < 0);
assert(isMultihomogeneous({s*t, s*t}, ideal 0_S, {{0}, {1}}));
assert(not isMultihomogeneous({s*t + s}, ideal 0_S, {{0}, {1}}));

assert(fiberEquations(matrix {{s^2, s*t}}, {2, 1/3}, ideal(s - t)) == {s^2 - 2, s*t - 1/3, s - t});
(points, allFound) = fiberPoints(ideal(s^2 - 2, s*t - 1), draw);
assert(points == {{{-2, 0, 1}, {{0, 1}, {0, 1/2}}}} and allFound);
assert(fiberPoints(ideal(s^3 - 2, t), draw, MaxDegree => 2) == ({}, false));
assert(fiberPoints(ideal(s, s - 1), draw) == ({}, true)); -- there are no points
circle = ideal(s^2 + t^2 - 1);
assert(not last fiberPoints(circle, draw) and last fiberPoints(circle, draw, Complete => true));
-- (s, t) |-> (s, s*t) misses points of the line s = 0; products of two numbers are all numbers
assert(not hasClosedImage(matrix {{s, s*t}}, ideal 0_S, {{0}, {1}}));
assert(hasClosedImage(matrix {{s*t}}, ideal 0_S, {{0}, {1}}));
-- t is in no block: the same map, homogeneous in s and without base points where s is not 0
assert(not hasClosedImage(matrix {{s, s*t}}, ideal 0_S, {{0}}));
point = pointWithValues(quadric, {{3, 4, 9}}, Candidates => {{1, 1, 2}, {2, 1, 4}});
assert(point == {2, 1, 4} and ring first point === ZZ/101);
///
