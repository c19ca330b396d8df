-- Documentation and tests of primes.m2.

doc ///
  Key
    primesOver
    (primesOver, Ideal)
  Headline
    the minimal primes of an ideal
  Usage
    primesOver J
  Inputs
    J:Ideal
  Outputs
    :List
      of the minimal primes; the unit ideal has none
  Description
    Example
      R = QQ[x,y];
      primesOver ideal(x*y, x^2)
      primesOver ideal 1_R
///

doc ///
  Key
    largestComponents
    (largestComponents, List)
  Headline
    of a list of prime ideals those that contain no other
  Usage
    largestComponents L
  Inputs
    L:List
      of prime ideals
  Outputs
    :List
  Description
    Example
      R = QQ[x,y,z];
      largestComponents {ideal(x, y), ideal x, ideal(y, z)}
///

doc ///
  Key
    hypersurfaceSection
    (hypersurfaceSection, Ideal, RingElement)
  Headline
    the components of the intersection with a hypersurface
  Usage
    hypersurfaceSection(Q, f)
  Inputs
    Q:Ideal
      prime
    f:RingElement
  Outputs
    :List
      of prime ideals
  Description
    Text
      One irreducible factor of @TT "f"@ is taken at a time, which is easier than all at once.
    Example
      R = QQ[x,y,z];
      hypersurfaceSection(ideal(x^2 - y*z), x*y)
///

doc ///
  Key
    rationalPoint
    (rationalPoint, Ideal, Function)
    [rationalPoint, Limit]
  Headline
    a point on a random linear section
  Usage
    rationalPoint(Q, draw)
  Inputs
    Q:Ideal
      prime
    draw:Function
      without arguments that returns integers, such as @TO numberStream@
    Limit => ZZ
      the number of sections that are tried; there is only one if the variety is finite
  Outputs
    :List
      the coordinates, in the field; @TO null@ if none was found
  Description
    Example
      R = ZZ/101[x,y,z];
      rationalPoint(ideal(x^2 - y*z), numberStream {3, 1, 4, 1, 5, 9, 2, 6})
///

TEST ///
debug needsPackage "Neuromanifolds"
S = (ZZ/101)[x,y,z];
assert(primesOver ideal 1_S == {} and primesOver ideal 0_S == {ideal 0_S} and #primesOver ideal(x*y) == 2);
assert(largestComponents {ideal(x, y), ideal x, ideal(x + y, z)} == {ideal x, ideal(x + y, z)});
assert(#hypersurfaceSection(ideal(x^2 - y*z), x) == 2 and hypersurfaceSection(ideal x, x*y) == {ideal x});
-- the line x = y = 0 lies on both factors and is listed once
assert(#hypersurfaceSection(ideal(x^2 - y*z), x*y) == 2);

point = rationalPoint(ideal(x^2 - y*z), numberStream {3, 1, 4, 1, 5, 9, 2, 6});
assert(vanishesAt(ideal(x^2 - y*z), point));
-- 2 is not a square modulo 101
assert(rationalZero ideal(x^2 - 2, y, z) === null and rationalZero ideal 1_S === null and rationalZero ideal x === null);
assert(rationalZero ideal(x - 3, y, z) == {3, 0, 0} and rationalZero ideal((x^2 - 2)*(x - 5), y, z) == {5, 0, 0});
assert(rationalPoint(ideal(x - 3, y, z), numberStream {1, 2}) == {3, 0, 0});
///
