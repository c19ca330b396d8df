// Turns every <figure class="sheet">: the pointer or the arrow keys rotate, the still picture is what is there without scripts.
document.querySelectorAll("figure.sheet").forEach(figure => {
  const still = figure.querySelector("svg"), mesh = JSON.parse(figure.dataset.mesh), tones = [[16, 70, 120], [52, 160, 150], [245, 190, 85]];
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  let azimuth = -0.9, elevation = 0.42, held = null, asked = false;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", still.getAttribute("aria-label") + " Arrow keys rotate.");
  still.replaceWith(canvas);
  const draw = () => {
    asked = false;
    const size = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1)) || 360;
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const ca = Math.cos(azimuth), sa = Math.sin(azimuth), ce = Math.cos(elevation), se = Math.sin(elevation), facets = [];
    const seen = mesh.map(row => row.map(([x, y, z]) => {
      const depth = x * sa + y * ca;
      return [size / 2 * (1 + 0.7 * (x * ca - y * sa)), size / 2 * (1 - 0.7 * (z * ce + depth * se)), depth * ce - z * se];
    }));
    for (let i = 0; i + 1 < mesh.length; i++) for (let j = 0; j + 1 < mesh[0].length; j++) {
      const at = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], p = at.map(([a, b]) => seen[a][b]);
      const u = [0, 1, 2].map(k => mesh[i + 1][j + 1][k] - mesh[i][j][k]), v = [0, 1, 2].map(k => mesh[i][j + 1][k] - mesh[i + 1][j][k]);
      const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      const light = 0.6 + 0.4 * Math.abs(0.5 * n[0] - 0.4 * n[1] + 0.77 * n[2]) / (Math.hypot(...n) || 1);
      const height = (at.reduce((sum, [a, b]) => sum + mesh[a][b][2], 0) / 4 + 1), low = Math.min(1, Math.floor(height));
      facets.push([p[0][2] + p[1][2] + p[2][2] + p[3][2], p, tones[low].map((c, k) => Math.round(light * (c + (height - low) * (tones[low + 1][k] - c))))]);
    }
    pen.clearRect(0, 0, size, size);
    pen.strokeStyle = "rgba(255,255,255,.35)";
    pen.lineWidth = size / 720;
    facets.sort((a, b) => b[0] - a[0]).forEach(([, p, colour]) => {
      pen.beginPath();
      p.forEach(([x, y], k) => k ? pen.lineTo(x, y) : pen.moveTo(x, y));
      pen.closePath();
      pen.fillStyle = `rgb(${colour})`;
      pen.fill();
      pen.stroke();
    });
  };
  const soon = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  const turn = (right, up) => { azimuth += right; elevation = Math.max(-1.5, Math.min(1.5, elevation + up)); soon(); };
  canvas.addEventListener("pointerdown", e => { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", e => {
    if (held) { turn((e.clientX - held[0]) / 90, (e.clientY - held[1]) / 90); held = [e.clientX, e.clientY]; }
  });
  ["pointerup", "pointercancel"].forEach(name => canvas.addEventListener(name, () => { held = null; }));
  const keys = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] };
  canvas.addEventListener("keydown", e => { if (keys[e.key]) { e.preventDefault(); turn(...keys[e.key]); } });
  new ResizeObserver(soon).observe(canvas);
  draw();
});
