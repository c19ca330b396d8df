newPackage(
    "Neuromanifolds",
    Version => "0.2.0",
    Date => "November 18, 2026",
    Authors => {{Name => "The m2bridge developers"}},
    Headline => "images, fibers, singularities and critical points of polynomial networks",
    HomePage => "https://m2bridge.readthedocs.io",
    Keywords => {"Applied Algebraic Geometry", "Algebraic Geometry"},
    AuxiliaryFiles => true,
    PackageImports => {"Saturation", "MinimalPrimes", "PrimaryDecomposition", "TangentCone"}
    )

export {
    -- rings
    "variableRing", "numberMatrix", "valuesAt", "vanishesAt", "groebnerMatrix", "numberStream",
    -- networks
    "weightMatrices", "genericOutput", "inputMonomials", "segreMonomials", "coefficientCoordinates", "splitList",
    "entrywisePower", "constantBeside", "polynomialsAt", "rankOneTensors",
    -- images
    "imageIdeal", "parametrizedIdeal", "coneOver", "spanBasis", "hVector", "initialIdeal", "finiteLength",
    "distinctValues", "sectionLength", "isUnmixed", "restrictedMap",
    -- primes and strata
    "primesOver", "largestComponents", "hypersurfaceSection", "rationalPoint",
    "genericRank", "singularComponents", "singularScheme", "schemePrimes", "singularStrata", "multiplicityAt",
    "milnorNumber", "deltaInvariants",
    -- fibers
    "stableIdeal", "pointWithValues", "conjugateCount", "multiplicitiesAlong", "reducedAlong", "dependentFields",
    "residuePoint", "torusWeights", "torusSection", "sectionPrimes", "distancePrimes",
    "fiberEquations", "fiberPoints", "hasClosedImage",
    -- critical points
    "dimensionBy", "degreeBy", "criticalIdeal", "kernelPairs", "dependencyLocus",
    "saturateByCombination", "leastRelation", "conormalIdeal", "algebraBasis", "coordinateVectors",
    "mapInChart", "regularPart", "singularPairs", "componentImages",
    -- jets and programs
    "Jet", "jet", "linearly", "bilinearly", "matrixOf", "networkJet", "jacobianRank", "evaluateProgram",
    -- options
    "Columns", "RankBounds", "QuadricRank", "IsCone", "Minors", "MaxDegree", "Points", "Eliminating",
    "Candidates", "Closures", "Complete", "Scaled", "MoreVariables"
    }

load "./Neuromanifolds/all.m2"

beginDocumentation()

doc ///
  Key
    Neuromanifolds
  Headline
    images, fibers, singularities and critical points of polynomial networks
  Description
    Text
      A polynomial network is a function @TT "(W, x) -> ..."@ of a list of weights and an input, matrices over any
      ring. The coefficients of its outputs as polynomials in the input are polynomials in the weights: the coordinates
      of a map whose image is the set of functions of the network, its neuromanifold. For a perceptron with two hidden
      neurons and squares these are the quadratic forms in three variables of rank at most two.
    Example
      perceptron = (W, x) -> W#1 * entrywisePower(W#0 * x, 2);
      W = weightMatrices(QQ, {{2, 3}, {1, 2}});
      f = coefficientCoordinates(genericOutput(perceptron, W, {3, 1}), inputMonomials(3, {2}));
      I = imageIdeal f;
      (codim I, degree I)
    Text
      Its singular points are the forms of rank at most one.
    Example
      largestComponents apply(singularComponents I, first)
    Text
      The rank of the Jacobian at one point is a lower bound of the dimension, without polynomials.
    Example
      weightValues = {matrixOf(ZZ/101, toList(1..6), {2, 3}), matrixOf(ZZ/101, {2, 7}, {1, 2})};
      jacobianRank(perceptron, weightValues, apply(8, k -> matrixOf(ZZ/101, {1, k, k^3}, {3, 1})))
  Subnodes
    :Networks
    splitList
    weightMatrices
    genericOutput
    inputMonomials
    segreMonomials
    coefficientCoordinates
    entrywisePower
    constantBeside
    polynomialsAt
    rankOneTensors
    Jet
    linearly
    bilinearly
    matrixOf
    networkJet
    jacobianRank
    evaluateProgram
    :Images
    coneOver
    spanBasis
    imageIdeal
    parametrizedIdeal
    hVector
    initialIdeal
    finiteLength
    distinctValues
    sectionLength
    isUnmixed
    restrictedMap
    :Components and singular points
    primesOver
    largestComponents
    hypersurfaceSection
    rationalPoint
    genericRank
    singularComponents
    singularScheme
    schemePrimes
    singularStrata
    multiplicityAt
    milnorNumber
    deltaInvariants
    :Fibers
    stableIdeal
    pointWithValues
    conjugateCount
    multiplicitiesAlong
    reducedAlong
    dependentFields
    residuePoint
    torusWeights
    torusSection
    sectionPrimes
    distancePrimes
    fiberEquations
    fiberPoints
    hasClosedImage
    :Critical points
    dimensionBy
    degreeBy
    criticalIdeal
    kernelPairs
    dependencyLocus
    saturateByCombination
    leastRelation
    conormalIdeal
    algebraBasis
    coordinateVectors
    mapInChart
    regularPart
    singularPairs
    componentImages
    :Rings and numbers
    variableRing
    numberMatrix
    valuesAt
    vanishesAt
    groebnerMatrix
    numberStream
///

scan({"rings", "networks", "images", "primes", "strata", "fibers", "critical-points", "jets", "programs"},
    name -> load("./Neuromanifolds/documentation/" | name | ".m2"))
