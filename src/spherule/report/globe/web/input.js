// Mouse, touch and keys on a pane's picture.

const STEP = 6; // degrees that an arrow key turns
const STILL = 5; // pixels that a pointer may move and still click

function listen(globe, pane) {
  const { canvas } = pane;
  const touching = new Map();
  let moved = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    touching.set(event.pointerId, [event.clientX, event.clientY]);
    if (touching.size === 1) moved = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = [event.clientX, event.clientY];
    const before = touching.get(event.pointerId);
    if (before) {
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      if (touching.size === 2) {
        const [other] = [...touching].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
        const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
        globe.zoom(apart(now) / Math.max(apart(before), 1));
      } else {
        const each = globe.camera.degrees(Math.min(canvas.clientWidth, canvas.clientHeight));
        globe.turn(-dx * each, dy * each);
      }
      touching.set(event.pointerId, now);
    }
    globe.point(pane, now);
  });

  canvas.addEventListener("pointerup", (event) => {
    touching.delete(event.pointerId);
    if (moved < STILL) globe.click(pane.see([event.clientX, event.clientY]));
  });
  canvas.addEventListener("pointercancel", (event) => touching.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => globe.point(pane, null));

  canvas.addEventListener(
    "wheel",
    (event) => {
      // Only after a click, so that a page with a globe in it can be scrolled past it.
      if (document.activeElement !== canvas) return;
      event.preventDefault();
      globe.zoom(Math.exp(-event.deltaY / 400));
    },
    { passive: false },
  );

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (event.shiftKey ? 0.1 : 1) * (STEP / globe.camera.zoom);
    const actions = {
      ArrowLeft: () => globe.turn(-step, 0),
      ArrowRight: () => globe.turn(step, 0),
      ArrowUp: () => globe.turn(0, step),
      ArrowDown: () => globe.turn(0, -step),
      "+": () => globe.zoom(1.3),
      "=": () => globe.zoom(1.3),
      "-": () => globe.zoom(1 / 1.3),
      0: () => globe.reset(),
      ",": () => globe.go(globe.frame - 1),
      ".": () => globe.go(globe.frame + 1),
      " ": () => globe.play(!globe.playing),
      v: () => pane.chooseNext("variable"),
      s: () => pane.chooseNext("source"),
      2: () => globe.showTwo(!globe.controls.two.checked),
      g: () => globe.showLines(!globe.graticule),
      Enter: () => globe.click(pane.see(null)),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    // Who turns by keys reads the value in the middle.
    globe.point(pane, null);
    actions[event.key]();
  });
}
