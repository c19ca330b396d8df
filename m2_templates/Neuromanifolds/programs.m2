-- Programs: networks recorded as lists of instructions on arrays (docs/certificates.md, section 1), evaluated on jets.
-- An array is the list of its entries in row-major order. An instruction is {operation, shape, operands, constants},
-- where operands are the indices of earlier instructions and rationals are {numerator, denominator}. The instructions
-- "weight" and "input" come first. The constants are, by operation:
--   scale        one rational
--   power        the exponent
--   constant     the entries
--   gather       indices in the list of entries
--   concatenate  the axis
--   slice        {start, count, increment} for each axis
--   einsum       the letters of each operand and of the result, letters being 0, 1, 2, ...
-- Every function is documented above its definition.
needs "./jets.m2";

-- strides shape: the distance, in the list of entries, of neighbours along each axis.
strides = method();
strides List := shape -> apply(#shape, k -> product drop(shape, k+1));

-- boxIndices(start, counts, increments): the indices start + j_0*increments#0 + j_1*increments#1 + ..., 0 <= j_k <
--   counts#k, the last j changing first.
boxIndices = method();
boxIndices(ZZ, List, List) := (start, counts, increments) -> (
    indexList := {start};
    for k from 0 to #counts - 1 do (
        indexList = flatten apply(indexList, i -> apply(counts#k, j -> i + j * increments#k));
        );
    indexList
    );

-- selected(L, x): the entries of the array x at the indices L.
selected = method();
selected(List, Jet) := (L, x) -> linearly(v -> v_L, x);

-- broadcast(x, shape, wanted): the array x of a shape, repeated along axes of length 1 and along new first axes.
broadcast = method();
broadcast(Jet, List, List) := (x, shape, wanted) -> (
    if shape == wanted then return x;
    missing := #wanted - #shape;
    increment := k -> if k < missing or shape#(k - missing) == 1 then 0 else (strides shape)#(k - missing);
    selected(boxIndices(0, wanted, apply(#wanted, increment)), x)
    );

-- contracted(x, shape, letters, wanted): the array with its axes in the order `wanted`, summed over the other letters.
contracted = method();
contracted(Jet, List, List, List) := (x, shape, letters, wanted) -> (
    order := wanted | select(letters, c -> not member(c, wanted));
    axes := apply(order, c -> position(letters, b -> b == c));
    summed := product drop(shape_axes, #wanted);
    moved := if axes == toList(0 ..< #shape) then x else selected(boxIndices(0, shape_axes, (strides shape)_axes), x);
    if summed == 1 then moved else linearly(v -> apply(pack(summed, v), sum), moved)
    );

-- matrixProducts(copies, inner, outer): the function of two lists of entries that multiplies, for each of so many
--   copies, a matrix with `inner` columns by a matrix with `outer` columns.
matrixProducts = method();
matrixProducts(ZZ, ZZ, ZZ) := (copies, inner, outer) -> (v, w) -> (
    (A, B) := (pack(#v // copies, v), pack(#w // copies, w));
    multiplied := k -> mutableMatrix pack(inner, A#k) * mutableMatrix pack(outer, B#k);
    flatten apply(copies, k -> flatten entries multiplied k)
    );

-- einsum(x, y, shapes, L): the sum of products of entries of two arrays; L lists the letters of both and of the result.
--   It is a matrix product for each value of the letters that both arrays and the result have.
einsum = method();
einsum(Jet, Jet, List, List) := (x, y, shapes, L) -> (
    (lettersX, lettersY, lettersZ) := toSequence L;
    lengths := hashTable(apply(lettersX, shapes#0, identity) | apply(lettersY, shapes#1, identity));
    entryCount := letters -> product(letters, c -> lengths#c);
    both := select(lettersX, c -> member(c, lettersY));
    copies := select(both, c -> member(c, lettersZ));
    inner := select(both, c -> not member(c, lettersZ));
    leftOnly := select(lettersX, c -> member(c, lettersZ) and not member(c, both));
    rightOnly := select(lettersY, c -> member(c, lettersZ) and not member(c, both));
    A := contracted(x, shapes#0, lettersX, copies | leftOnly | inner);
    B := contracted(y, shapes#1, lettersY, copies | inner | rightOnly);
    multiplied := bilinearly(matrixProducts(entryCount copies, entryCount inner, entryCount rightOnly), A, B);
    order := copies | leftOnly | rightOnly;
    contracted(multiplied, apply(order, c -> lengths#c), order, lettersZ)
    );

-- appended(x, y): the entries of x, then those of y: (x, 0) + (0, y).
appended = method();
appended(Jet, Jet) := (x, y) -> (
    zeros := v -> apply(v, c -> 0 * c);
    linearly(v -> v | zeros(y#0), x) + linearly(w -> zeros(x#0) | w, y)
    );

-- concatenated(L, shapes, axis): the arrays of the list L joined along an axis.
concatenated = method();
concatenated(List, List, ZZ) := (L, shapes, axis) -> (
    -- the number of entries of each array for one value of the axes before
    chunks := apply(shapes, s -> product drop(s, axis));
    rowCount := product take(first shapes, axis);
    starts := {0} | accumulate(plus, 0, apply(chunks, c -> c * rowCount));
    indicesOf := (row, k) -> toList(starts#k + row * chunks#k ..< starts#k + (row+1) * chunks#k);
    selected(flatten apply(rowCount, row -> flatten apply(#chunks, k -> indicesOf(row, k))), fold(appended, L))
    );

-- numberFrom(KK, q): the element of the field KK that is the rational number q = {numerator, denominator}.
numberFrom = method();
numberFrom(Ring, List) := (KK, q) -> (q#0)_KK / (q#1)_KK;

-- executed(KK, c, x, shapes): the result of the instruction c for the arrays x of these shapes.
executed = method();
executed(Ring, List, List, List) := (KK, c, x, shapes) -> (
    (word, shape, operands, constants) := toSequence c;
    spread := k -> broadcast(x#k, shapes#k, shape);
    if word == "add" then spread 0 + spread 1
    else if word == "multiply" then bilinearly((v, w) -> apply(v, w, times), spread 0, spread 1)
    else if word == "scale" then linearly(v -> numberFrom(KK, first constants) * v, x#0)
    else if word == "power" then entrywisePower(x#0, first constants)
    else if word == "reshape" then x#0
    else if word == "gather" then selected(constants, x#0)
    else if word == "concatenate" then concatenated(x, shapes, first constants)
    else if word == "einsum" and #x == 1 then contracted(x#0, shapes#0, constants#0, last constants)
    else if word == "einsum" then einsum(x#0, x#1, shapes, constants)
    else if word == "slice" then (
        increments := strides(shapes#0);
        start := sum(#increments, k -> constants#k#0 * increments#k);
        selected(boxIndices(start, shape, apply(#increments, k -> constants#k#2 * increments#k)), x#0)
        )
    else error("no instruction " | word)
    );

-- sizesOf(instructions, word): the number of entries of each "weight", or of each "input".
sizesOf = method();
sizesOf(List, String) := (instructions, word) -> apply(select(instructions, c -> c#0 == word), c -> product(c#1));

-- evaluateProgram(instructions, outputs, W, X): all outputs, in one list, of the program at the jets in the list W and
--   the jet X, with one row each; X holds all inputs, and is null if there are none. `outputs` lists indices of
--   instructions.
evaluateProgram = method();
evaluateProgram(List, List, List, Thing) := (instructions, outputs, W, X) -> (
    KK := ring (first W)#0;
    results := new MutableList from apply(W, w -> linearly(v -> flatten entries v, w));
    start := 0;
    for n in sizesOf(instructions, "input") do (
        columns := toList(start ..< start + n);
        results#(#results) = linearly(v -> (flatten entries v)_columns, X);
        start = start + n;
        );
    for c in drop(instructions, #results) do (
        results#(#results) = (
            if c#0 == "constant" then constantLike(apply(c#3, q -> numberFrom(KK, q)), first W)
            else executed(KK, c, apply(c#2, k -> results#k), apply(c#2, k -> instructions#k#1))
            );
        );
    fold(appended, apply(outputs, k -> results#k))
    );
