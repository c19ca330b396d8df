-- Jets: values with derivatives in several directions, for forward differentiation without polynomials.
-- A jet is {A, {B_1, B_2, ...}} and means A + e*B_1, A + e*B_2, ... with e^2 = 0. A is a list or a mutable matrix; B_i
-- has the same form, or is null, which stands for 0. Sums, products, transposes, rows x^{i}, columns x_{i} are defined.
-- Every function is documented above its definition; jets-tests.m2 contains tests.
Jet = new Type of BasicList;

-- jet(A, L): the value A with the list L of derivatives.
jet = (A, L) -> new Jet from {A, L};

-- linearly(f, x): a linear function of a jet.
linearly = (f, x) -> jet(f x#0, apply(x#1, B -> if B =!= null then f B));

-- bilinearly(f, x, y): a bilinear function of two jets, by the product rule.
bilinearly = (f, x, y) -> (
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
Jet ^ List := (x, rows) -> linearly(A -> submatrix(A, rows, toList(0..<numColumns A)), x);
Jet _ List := (x, columns) -> linearly(A -> submatrix(A, toList(0..<numRows A), columns), x);

-- matrixOf(KK, L, {m, n}): the mutable m x n matrix whose entries, row by row, are the list L.
matrixOf = (KK, L, size) -> (
    M := mutableMatrix(KK, size#0, size#1);
    scan(#L, k -> M_(k // size#1, k % size#1) = L#k);
    M
    );

-- entriesOf A: the entries of a list or of a matrix, row by row.
entriesOf = (A) -> if instance(A, List) then A else flatten entries A;

-- withEntries(A, L): a list or a matrix of the form of A with the entries L.
withEntries = (A, L) -> if instance(A, List) then L else matrixOf(ring A, L, {numRows A, numColumns A});

-- entrywisePower(x, n): the n-th power of each entry.
if not instance(entrywisePower, MethodFunction) then entrywisePower = method();
entrywisePower(Jet, ZZ) := (x, n) -> (
    bases := entriesOf(x#0);
    slopes := apply(bases, c -> n * c^(n-1));
    derivative := B -> if B =!= null then withEntries(B, apply(slopes, entriesOf B, times));
    jet(withEntries(x#0, apply(bases, c -> c^n)), apply(x#1, derivative))
    );

-- polynomialsAt(f, x): the polynomials in the matrix f with one row, at a jet x with one row, by the chain rule.
polynomialsAt = (f, x) -> (
    atPoint := map(coefficientRing ring f, ring f, entriesOf(x#0));
    differential := mutableMatrix atPoint jacobian f;
    jet(mutableMatrix atPoint f, apply(x#1, B -> if B =!= null then B * differential))
    );
