-- Jets: values with derivatives in several directions, for forward differentiation without polynomials.
-- A jet is {A, {B_1, B_2, ...}} and means A + e*B_1, A + e*B_2, ... with e^2 = 0. A is a list or a mutable matrix; B_i
-- has the same form, or is null, which stands for 0. Sums, products, transposes, rows x^{i}, columns x_{i} are defined.
-- Every function is documented above its definition.
needs "./networks.m2";
Jet = new Type of BasicList;

-- jet(A, L): the value A with the list L of derivatives.
jet = method();
jet(Thing, List) := (A, L) -> new Jet from {A, L};

-- linearly(f, x): a linear function of a jet.
linearly = method();
linearly(Function, Jet) := (f, x) -> jet(f x#0, apply(x#1, B -> if B =!= null then f B));

-- bilinearly(f, x, y): a bilinear function of two jets, by the product rule.
bilinearly = method();
bilinearly(Function, Jet, Jet) := (f, x, y) -> (
    derivative := (B, C) -> (
        if B === null and C === null then null
        else if C === null then f(B, y#0)
        else if B === null then f(x#0, C)
        else f(B, y#0) + f(x#0, C)
        );
    jet(f(x#0, y#0), apply(x#1, y#1, derivative))
    );
Jet * Jet := (x, y) -> bilinearly((A, B) -> A * B, x, y);
Jet + Jet := (x, y) -> (
    total := (B, C) -> if B === null then C else if C === null then B else B + C;
    jet(x#0 + y#0, apply(x#1, y#1, total))
    );
- Jet := x -> linearly(A -> -A, x);
Jet - Jet := (x, y) -> x + (-y);
transpose Jet := x -> linearly(transpose, x);
Jet ^ List := (x, rows) -> linearly(A -> A^rows, x);
Jet _ List := (x, columns) -> linearly(A -> A_columns, x);

-- matrixOf(KK, L, {m, n}): the mutable m x n matrix whose entries, row by row, are the list L.
matrixOf = method();
matrixOf(Ring, List, List) := (KK, L, size) -> (
    M := mutableMatrix(KK, size#0, size#1);
    scan(#L, k -> M_(k // size#1, k % size#1) = L#k);
    M
    );

-- entriesOf A: the entries of a list or of a matrix, row by row.
entriesOf = method();
entriesOf List := identity;
entriesOf MutableMatrix := A -> flatten entries A;

-- withEntries(A, L): a list or a matrix of the form of A with the entries L.
withEntries = method();
withEntries(List, List) := (A, L) -> L;
withEntries(MutableMatrix, List) := (A, L) -> matrixOf(ring A, L, {numRows A, numColumns A});

-- constantLike(A, x): the jet with value A and no derivatives, in the directions of the jet x.
constantLike = method();
constantLike(Thing, Jet) := (A, x) -> jet(A, apply(x#1, B -> null));
constantBeside(Matrix, Jet) := (A, x) -> (
    KK := ring x#0;
    constantLike(mutableMatrix matrix applyTable(entries A, c -> c_KK), x)
    );

-- entrywisePower(x, n), of networks.m2, also takes jets.
entrywisePower(Jet, ZZ) := (x, n) -> (
    bases := entriesOf(x#0);
    slopes := apply(bases, c -> if n == 0 then 0*c else n * c^(n-1));
    derivative := B -> if B =!= null then withEntries(B, apply(slopes, entriesOf B, times));
    jet(withEntries(x#0, apply(bases, c -> c^n)), apply(x#1, derivative))
    );

-- polynomialsAt(f, x), of networks.m2, also takes jets with one row, by the chain rule.
polynomialsAt(Matrix, Jet) := (f, x) -> (
    atPoint := map(coefficientRing ring f, ring f, entriesOf(x#0));
    differential := mutableMatrix atPoint jacobian f;
    jet(mutableMatrix atPoint f, apply(x#1, B -> if B =!= null then B * differential))
    );

-- networkJet(F, W, D, X): the network F at the weights W and the input X, mutable matrices over a field, with
--   derivatives in directions: for each of the weights D lists the derivatives of that weight, one for each
--   direction; null stands for 0. X is null for a map without inputs. The result is the sequence (outputs, list of
--   derivatives) of lists of numbers.
networkJet = method();
networkJet(Function, List, List, Thing) := (F, W, D, X) -> (
    moving := apply(W, D, jet);
    y := F(moving, if X =!= null then constantLike(X, first moving));
    outputs := entriesOf(y#0);
    zeros := apply(outputs, c -> 0 * c);
    (outputs, apply(y#1, B -> if B === null then zeros else entriesOf B))
    );

-- weightDirections(KK, sizes): the directions in which exactly one entry of one weight moves, for networkJet: for each
--   weight, a list with one unit matrix, or null, for each entry of all weights.
weightDirections = method();
weightDirections(Ring, List) := (KK, sizes) -> (
    unit := (size, k) -> matrixOf(KK, apply(product size, i -> if i == k then 1_KK else 0_KK), size);
    moved := (k, i) -> (
        if i == k then apply(product sizes#k, j -> unit(sizes#k, j))
        else toList(product sizes#i : null)
        );
    apply(#sizes, k -> flatten apply(#sizes, i -> moved(k, i)))
    );

-- jacobianRank(F, W, inputs): a lower bound of the rank of the derivatives of the outputs of the network F at all of
--   the inputs, by the entries of all weights W. The result is (rank, number of inputs used): inputs are used in order
--   until one adds no rank, so they must be general. Half of the inputs that the weights need are used first; if their
--   columns are independent, all of these; then one more at a time.
jacobianRank = method();
jacobianRank(Function, List, List) := (F, W, inputs) -> (
    sizes := apply(W, M -> {numRows M, numColumns M});
    directions := weightDirections(ring first W, sizes);
    weightCount := sum(sizes, product);
    outputCount := #(first networkJet(F, W, apply(W, M -> {}), first inputs));
    derivatives := toList(weightCount : {});
    (used, r, wanted) := (0, -1, 1 + weightCount // (2 * outputCount));
    while used < #inputs and r < weightCount do (
        further := apply(take(inputs, {used, min(wanted, #inputs) - 1}), X -> last networkJet(F, W, directions, X));
        derivatives = apply(derivatives, transpose further, (row, columns) -> join(row, flatten columns));
        used = used + #further;
        rankBefore := r;
        r = rank mutableMatrix matrix derivatives;
        if r == rankBefore then break;
        wanted = max(used + 1, if r == used * outputCount then 1 + weightCount // outputCount else 0);
        );
    (r, used)
    );
