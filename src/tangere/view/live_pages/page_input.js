// What a person does with mouse, keys and gamepad, told to the server as it happens, by a socket of its own.
// The pages of viser tell drags twenty times a second; a hand wants each of them.
(() => {
  if (window.tangereInput) return;
  const options = TANGERE_OPTIONS;
  const token = location.pathname.split("/")[1];
  const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/${token}/input`;
  const state = { x: 0.5, y: 0.5, pressed: false, notches: 0, stamp: 0 };
  const keys = new Set();
  const input = (window.tangereInput = { sent: 0, latencies: [], frames: [] });
  const drawn = new Map(); // by the stamp of an event: pictures drawn before it
  let pictures = 0;
  let socket = null;
  let pad = "";

  const canvas = () => document.querySelector("canvas");
  const send = (message) => {
    if (socket === null || socket.readyState !== WebSocket.OPEN) return;
    socket.send(JSON.stringify(message));
    input.sent += 1;
    if (message.stamp !== undefined) drawn.set(message.stamp, pictures);
  };
  const sendPointer = () =>
    send({ pointer: [state.x, state.y, state.notches], pressed: state.pressed, stamp: state.stamp });
  const connect = () => {
    socket = new WebSocket(address);
    socket.onclose = () => setTimeout(connect, 1000);
  };
  connect();

  const place = (event) => {
    const shown = canvas();
    if (shown === null) return;
    const box = shown.getBoundingClientRect();
    state.x = (event.clientX - box.left) / box.width;
    state.y = (event.clientY - box.top) / box.height;
    state.stamp = event.timeStamp;
  };
  const capture = { capture: true, passive: false };
  addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return; // whether a part is under it is known elsewhere
    state.notches = 0;
    state.pressed = true;
    place(event);
    sendPointer();
  }, capture);
  addEventListener("pointermove", (event) => {
    if (!state.pressed) return;
    place(event);
    sendPointer();
  }, capture);
  const release = () => {
    if (!state.pressed) return;
    state.pressed = false;
    sendPointer();
  };
  addEventListener("pointerup", release, capture);
  addEventListener("pointercancel", release, capture);
  addEventListener("wheel", (event) => {
    if (!state.pressed) return; // the camera's
    event.preventDefault();
    event.stopImmediatePropagation();
    state.notches += Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY) / 100, 3);
    state.stamp = event.timeStamp;
    sendPointer();
  }, capture);

  const typing = (event) => /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName || "");
  const sendKeys = (event) => {
    if (event) state.stamp = event.timeStamp;
    send({ keys: [...keys], stamp: state.stamp });
  };
  addEventListener("keydown", (event) => {
    if (!options.keys.includes(event.code) || typing(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // the camera has some of these keys, too
    if (event.repeat) return;
    keys.add(event.code);
    sendKeys(event);
  }, capture);
  addEventListener("keyup", (event) => {
    if (!keys.delete(event.code)) return;
    event.stopImmediatePropagation();
    sendKeys(event);
  }, capture);
  addEventListener("blur", () => {
    release();
    keys.clear();
    sendKeys(null);
  });

  const lookAtPad = () => {
    pictures += 1;
    if (options.gamepad) {
      const found = [...navigator.getGamepads()].find((one) => one !== null && one.connected);
      const told = found
        ? { axes: [...found.axes].slice(0, 4), buttons: [...found.buttons].slice(0, 8).map((one) => one.value) }
        : null;
      const text = JSON.stringify(told);
      if (text !== pad) {
        pad = text;
        send({ gamepad: told, stamp: performance.now() });
      }
    }
    requestAnimationFrame(lookAtPad);
  };
  lookAtPad();

  // The server writes the stamp of the newest input that a picture shows into the page, in the same stream as the
  // picture; from there to the stamp is the latency.
  let seen = "";
  new MutationObserver(() => {
    const echo = document.getElementById("tangere-echo");
    if (echo === null || echo.dataset.stamp === seen) return;
    seen = echo.dataset.stamp;
    const latency = performance.now() - Number(seen);
    input.latencies.push(latency);
    const before = drawn.get(Number(seen));
    for (const stamp of drawn.keys()) if (stamp <= Number(seen)) drawn.delete(stamp);
    // What is in the page now is in the next picture at the latest.
    const frames = before === undefined ? null : pictures + 1 - before;
    if (frames !== null) input.frames.push(frames);
    for (const kept of [input.latencies, input.frames]) if (kept.length > 2000) kept.shift();
    send({ latency, frames });
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
})();
