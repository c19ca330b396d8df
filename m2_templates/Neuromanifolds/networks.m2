-- Networks: polynomial maps X |-> F(W, X), where W is a list of matrices of weights and X is an input, a matrix.
-- F is a Macaulay2 function (W, X) -> ... of matrices over any ring. Its coordinates are the coefficients of the
-- outputs as polynomials in the entries of X; they are polynomials in the weights.
-- Every function is documented above its definition.
needs "./rings.m2";

-- splitList(L, sizes): the list L cut into consecutive lists of m*n elements, for each {m, n} in sizes.
splitList = method();
splitList(List, List) := (L, sizes) -> (
    ends := accumulate(plus, 0, apply(sizes, product));
    apply(#sizes, k -> take(L, {ends#k - product(sizes#k), ends#k - 1}))
    );

-- weightMatrices(KK, sizes): matrices of the sizes {m, n} whose entries, row by row, are the variables w_0, w_1, ... of
--   one ring over KK; the ring is that of each of the matrices.
--   Options: RankBounds => {{k, a}, ...}: the ring is the quotient by the (a+1)-minors of matrix number k.
weightMatrices = method(Options => {RankBounds => {}});
weightMatrices(Ring, List) := o -> (KK, sizes) -> (
    w := local w;
    S := variableRing(KK, sum(sizes, product), VariableBaseName => w);
    W := apply(splitList(gens S, sizes), sizes, (L, size) -> matrix pack(size#1, L));
    bounds := select(o.RankBounds, b -> b#1 < min(sizes#(b#0)));
    if #bounds == 0 then return W;
    R := S/sum(bounds, b -> minors(b#1 + 1, W#(b#0)));
    apply(W, M -> promote(M, R))
    );

-- genericOutput(F, W, {m, n}): the output of the network at the generic m x n input, whose entries are numbered column
--   by column: a matrix over R[x_0, x_1, ...], where R is the ring of the weights W.
genericOutput = method();
genericOutput(Function, List, List) := (F, W, inputSize) -> (
    x := local x;
    RX := variableRing(ring first W, product inputSize, VariableBaseName => x);
    F(apply(W, M -> promote(M, RX)), genericMatrix(RX, RX_0, inputSize#0, inputSize#1))
    );

-- inputMonomials(n, degrees): the exponents of the monomials in n variables of these degrees; those of one degree in
--   descending lexicographic order.
inputMonomials = method();
inputMonomials(ZZ, List) := (n, degreesOf) -> flatten apply(degreesOf, k -> rsort compositions(n, k));

-- symmetricPairs d: the pairs {i, j} with 0 <= i <= j < d, the indices of quadratic monomials.
symmetricPairs = method();
symmetricPairs ZZ := d -> flatten apply(d, i -> apply(toList(i..d-1), j -> {i, j}));

-- segreMonomials(d, t): the exponents of the monomials x_(1,m) x_(2,i) x_(2,j), i <= j, in the entries of a d x t
--   input: linear in the first token (column), quadratic in the second. For one layer of lightning self-attention their
--   coefficients in the first token's output determine the map (Henry, Marchetti, Kohn, arXiv:2408.17221, Prop. A.5).
segreMonomials = method();
segreMonomials(ZZ, ZZ) := (d, t) -> (
    if t < 2 then error "segreMonomials: at least two tokens";
    exponentOf := L -> apply(d * t, k -> number(L, i -> i == k));
    flatten apply(d, m -> apply(symmetricPairs d, ij -> exponentOf {m, d + ij#0, d + ij#1}))
    );

-- coefficientCoordinates(Y, L): the coefficients, at the exponents L, of the entries of Y, row by row: a matrix with
--   one row over the ring of the weights.
coefficientCoordinates = method();
coefficientCoordinates(Matrix, List) := (Y, L) ->
    matrix {flatten apply(flatten entries Y, f -> coefficientsAt(f, L))};

-- entrywisePower(x, n): the n-th power of each entry.
entrywisePower = method();
entrywisePower(Matrix, ZZ) := (x, n) -> matrix applyTable(entries x, c -> c^n);

-- constantBeside(A, x): the matrix A of integers or fractions over the ring of x, for sums and products with x.
constantBeside = method();
constantBeside(Matrix, Matrix) := (A, x) -> matrix applyTable(entries A, c -> c_(ring x));

-- polynomialsAt(f, x): the polynomials in the matrix f with one row, at a matrix x with one row over any ring.
polynomialsAt = method();
polynomialsAt(Matrix, Matrix) := (f, x) -> (map(ring x, ring f, x)) f;

-- rankOneTensors(KK, m, d): the ideal of the tensors h (x) q (x) S in KK^m (x) KK^d (x) Sym^2 KK^d, S of bounded
--   rank, by minors of flattenings; KK has characteristic other than 2. The coordinate of
--   h_n q_k x_i x_j, i <= j, has the index (n*d + k) * binomial(d+1, 2) + (index of {i, j} in symmetricPairs d).
--   Options: QuadricRank => the bound of the rank of S.
rankOneTensors = method(Options => {QuadricRank => 1});
rankOneTensors(Ring, ZZ, ZZ) := o -> (KK, m, d) -> (
    monomialPairs := symmetricPairs d;
    Z := variableRing(KK, m * d * #monomialPairs);
    quadric := (n, k) -> take(gens Z, {(n*d + k) * #monomialPairs, (n*d + k + 1) * #monomialPairs - 1});
    -- the symmetric matrix of a quadric, times two
    hessian := q -> matrix table(d, d, (i, j) -> (
        c := q#(position(monomialPairs, s -> s == {min(i, j), max(i, j)}));
        if i == j then 2 * c else c));
    alongOutput := matrix apply(m, n -> flatten apply(d, k -> quadric(n, k)));
    alongInput := matrix apply(d, k -> flatten apply(m, n -> quadric(n, k)));
    alongQuadric := fold((M, N) -> M | N, flatten table(m, d, (n, k) -> hessian quadric(n, k)));
    trim(minors(2, alongOutput) + minors(2, alongInput) + minors(o.QuadricRank + 1, alongQuadric))
    );
