"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { nodes, edges } = data.network;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const at = (id) => document.getElementById(id);

  // Elements. Text from the data only ever becomes textContent; nothing is parsed as markup.

  function html(tag, attributes = {}, ...children) {
    return filled(document.createElement(tag), attributes, children);
  }
  function svg(tag, attributes = {}, ...children) {
    return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }
  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  // Numbers.

  const minus = (text) => text.replace("-", "−");
  const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
  const cents = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const three = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
  const count = (value) => minus(whole.format(value));
  const score = (value) => minus(cents.format(value));
  const percent = (share) => (share > 0 && share < 1e-6 ? "< 0.0001 %" : `${minus(three.format(100 * share))} %`);
  const tenths = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const frequency = (share) => `${tenths.format(100 * share)} %`;
  const several = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
  const signed = (value) => (value < 0 ? minus(`${value}`) : `+${value}`);
  const loss = (value) => (value === "required" ? "required" : score(value));
  function duration(seconds) {
    if (seconds < 1) return `${three.format(1000 * seconds)} ms`;
    if (seconds < 120) return `${three.format(seconds)} s`;
    if (seconds < 7200) return `${three.format(seconds / 60)} min`;
    return `${three.format(seconds / 3600)} h`;
  }

  // The graph as lists: edges into and out of each vertex.

  const into = nodes.map(() => []);
  const outOf = nodes.map(() => []);
  edges.forEach((edge, k) => {
    into[edge.child].push(k);
    outOf[edge.parent].push(k);
  });
  const weight = (k) => (edges[k].strength === "required" ? Infinity : edges[k].strength ?? -1);
  const strongestFirst = (list) => [...list].sort((a, b) => weight(b) - weight(a) || a - b);
  const strongest = Math.max(0, ...edges.map((_, k) => weight(k)).filter(Number.isFinite));

  const known = edges.some((edge) => edge.strength !== null);
  const sure = edges.some((edge) => edge.confidence !== null);
  const weighted = edges.some((edge) => edge.weight !== undefined);
  const numbersTold = () => html("span", {}, [weighted && "weight", known && "loss", sure && "confidence"].filter(Boolean).join(" · "));

  // Head and tiles.

  function head() {
    document.title = data.title;
    at("title").textContent = data.title;
    const { outcome } = data;
    if (!outcome) return;
    const proved = outcome.gap !== null && outcome.gap <= 1e-9;
    const verdict = proved ? "Optimum proved" : outcome.gap === null ? null : outcome.gap > 0.2 ? "Weak bound" : `Gap ${percent(outcome.gap)}`;
    const badge = verdict && html("span", { class: proved ? "badge good" : "badge" }, verdict);
    const status = proved && outcome.status === "optimal" ? "" : outcome.status; // the badge says it
    at("status").append(...[badge, " ", status].filter(Boolean));
    at("status").hidden = !at("status").textContent.trim();
  }

  function tile(name, value, note) {
    if (value === null || value === undefined) return;
    at("summary").append(html("div", { class: "tile" }, html("h3", {}, name), html("b", {}, value), note && html("p", {}, note)));
  }

  function tiles() {
    const { outcome, bits } = data;
    if (outcome) {
      tile("Score", score(outcome.score), outcome.score_name);
      if (outcome.empty_score !== null) {
        tile("Gain", score(outcome.score - outcome.empty_score), `over the graph without edges, ${score(outcome.empty_score)}`);
      }
      if (outcome.gap !== null) {
        const note = outcome.gap <= 1e-9 ? "no network scores more" : "of the gain, at most, is left to find";
        tile("Gap", percent(Math.max(outcome.gap, 0)), note);
      }
    }
    tile("Edges", count(edges.length), `between ${several(nodes.length, "vertex", "vertices")}`);
    if (bits && bits.ours) {
      const note = bits.paper ? `${comparison(bits)}, ${count(bits.paper.total)}` : "of the QUBO";
      tile("Bits", count(bits.ours.total), note);
    }
    if (outcome && outcome.seconds !== null) tile("Solver time", duration(outcome.seconds), outcome.solver && `with ${outcome.solver}`);
  }

  function comparison({ ours, paper }) {
    const share = 1 - ours.total / paper.total;
    if (!paper.total || share === 0) return "as many as the paper’s formulation";
    return `${three.format(100 * Math.abs(share))} % ${share > 0 ? "fewer" : "more"} than the paper’s formulation`;
  }

  // The picture.

  const picture = at("picture");
  const view = svg("g", { id: "view" });
  const landmarks = svg("g", { id: "landmarks" });
  const nodeElements = [];
  const edgeElements = [];

  function draw() {
    for (const edge of edges) {
      const faint = edge.confidence === null ? null : 0.3 + 0.7 * edge.confidence;
      const element = svg(
        "g",
        { class: "edge" },
        svg("path", { class: "line", d: edge.line, "stroke-opacity": faint }),
        svg("path", { class: "head", d: edge.head, "fill-opacity": faint }),
        svg("path", { class: "hit", d: edge.line }),
      );
      element.style.setProperty("--thickness", edge.thickness);
      edgeElements.push(element);
      view.append(element);
    }
    nodes.forEach((node, v) => {
      const element = svg(
        "g",
        { class: "node", "data-vertex": v, transform: `translate(${node.x - node.width / 2} ${node.y - data.network.box / 2})` },
        svg("rect", { width: node.width, height: data.network.box, rx: 7 }),
        svg("text", { x: node.width / 2, y: data.network.box / 2 + 4.5 }, node.label),
      );
      nodeElements.push(element);
      view.append(element);
    });
    picture.append(view, landmarks);
    picture.setAttribute("aria-label", `${several(nodes.length, "vertex", "vertices")} and ${several(edges.length, "edge", "edges")}`);
    squeeze();
  }

  // A font wider than foreseen is squeezed into the box; all are measured before any is changed.
  function squeeze() {
    const texts = nodeElements.map((element) => element.lastChild);
    const lengths = texts.map((text) => text.getComputedTextLength());
    texts.forEach((text, v) => {
      const room = nodes[v].width - 8;
      if (lengths[v] > room) {
        text.setAttribute("textLength", room);
        text.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    });
  }

  // Moving and zooming.

  const place = { x: 0, y: 0, k: 1 };
  let fitted = true;
  let flight = 0;

  let shownScale = null;

  function show() {
    view.setAttribute("transform", `translate(${place.x.toFixed(2)} ${place.y.toFixed(2)}) scale(${place.k.toFixed(5)})`);
    showLandmarks();
    showFrame();
    if (place.k === shownScale) return;
    shownScale = place.k;
    picture.classList.toggle("far", place.k < 0.36);
    view.style.setProperty("--hairline", place.k < 0.8 ? Math.min(0.8 / place.k, 8) : 0); // lines stay visible from afar
  }
  // From afar, names of the vertices with the most edges, as large as near; each only where it covers no other.
  const byDegree = nodes.map((_, v) => v).sort((a, b) => into[b].length + outOf[b].length - into[a].length - outOf[a].length || a - b);
  let landmarkState = "";
  function showLandmarks() {
    const far = place.k < 0.36;
    const state = far ? `${place.k.toFixed(4)} ${hiddenVersion}` : "";
    if (state !== landmarkState) {
      landmarkState = state;
      const boxes = [];
      const chosen = [];
      for (const v of far ? byDegree : []) {
        if (nodeElements[v].classList.contains("away")) continue;
        const half = 3.6 * nodes[v].label.length + 7;
        const [x, y] = [place.k * nodes[v].x, place.k * nodes[v].y];
        if (boxes.some((box) => Math.abs(box.x - x) < box.half + half + 3 && Math.abs(box.y - y) < 21)) continue;
        boxes.push({ x, y, half });
        chosen.push(svg("g", { class: "landmark", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
          svg("rect", { x: -half, y: -9, width: 2 * half, height: 18, rx: 5 }), svg("text", { y: 4 }, nodes[v].label)));
        if (chosen.length >= 60) break;
      }
      landmarks.replaceChildren(...chosen);
    }
    landmarks.setAttribute("transform", `translate(${place.x.toFixed(2)} ${place.y.toFixed(2)})`);
  }

  // The overview map: shown while a part of the picture is out of sight.
  const frame = svg("rect", { class: "frame" });
  let mapScale = 0;
  function drawMap() {
    const { width, height } = data.network;
    mapScale = Math.min(150 / width, 120 / height);
    const map = at("map");
    map.setAttribute("width", (width * mapScale).toFixed(1));
    map.setAttribute("height", (height * mapScale).toFixed(1));
    map.setAttribute("viewBox", `0 0 ${width} ${height}`);
    map.append(...edges.map((edge) => svg("path", { d: edge.line })),
      ...nodes.map((node) => svg("rect", { class: "box", x: node.x - node.width / 2, y: node.y - data.network.box / 2, width: node.width, height: data.network.box })), frame);
    const travel = (event) => {
      const box = map.getBoundingClientRect();
      const { width: wide, height: high } = room();
      jump({ k: place.k, x: wide / 2 - (place.k * (event.clientX - box.left)) / mapScale, y: high / 2 - (place.k * (event.clientY - box.top)) / mapScale });
    };
    map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); travel(event); });
    map.addEventListener("pointermove", (event) => { if (event.buttons) travel(event); });
  }
  function showFrame() {
    const { width, height } = room();
    const seen = { x: -place.x / place.k, y: -place.y / place.k, width: width / place.k, height: height / place.k };
    const all = seen.width >= data.network.width && seen.height >= data.network.height;
    at("map").toggleAttribute("hidden", all || nodes.length < 12);
    for (const [name, value] of Object.entries(seen)) frame.setAttribute(name, value.toFixed(1));
    frame.setAttribute("stroke-width", (1.5 / mapScale).toFixed(1));
  }

  function room() {
    return { width: picture.clientWidth || 1, height: picture.clientHeight || 1 };
  }
  function wholeView() {
    const { width, height } = room();
    const box = shownBox();
    const k = Math.min(width / box.width, (height - 16) / box.height, 1.4);
    return { k, x: (width - k * box.width) / 2 - k * box.left, y: (height - k * box.height) / 2 - k * box.top };
  }
  // The part of the picture that is not filtered out.
  function shownBox() {
    const shown = nodes.filter((_, v) => !nodeElements[v].classList.contains("away"));
    if (shown.length === nodes.length || !shown.length) return { left: 0, top: 0, width: data.network.width, height: data.network.height };
    const left = Math.min(...shown.map((node) => node.x - node.width / 2)) - 24;
    const right = Math.max(...shown.map((node) => node.x + node.width / 2)) + 24;
    const top = Math.min(...shown.map((node) => node.y)) - data.network.box / 2 - 24;
    const bottom = Math.max(...shown.map((node) => node.y)) + data.network.box / 2 + 24;
    return { left, top, width: right - left, height: bottom - top };
  }
  function go(target, isFit = false) {
    cancelAnimationFrame(flight);
    fitted = isFit;
    if (still) return void (Object.assign(place, target), show());
    const from = { ...place };
    const start = performance.now();
    const step = (now) => {
      const share = Math.min(1, Math.max(0, (now - start) / 260));
      const eased = 1 - (1 - share) ** 3;
      for (const key of ["x", "y", "k"]) place[key] = from[key] + (target[key] - from[key]) * eased;
      show();
      if (share < 1) flight = requestAnimationFrame(step);
    };
    flight = requestAnimationFrame(step);
  }
  function fit() {
    go(wholeView(), true);
  }
  function zoomed(factor, x, y) {
    const k = Math.min(4, Math.max(wholeView().k / 2, place.k * factor));
    return { k, x: x - ((x - place.x) * k) / place.k, y: y - ((y - place.y) * k) / place.k };
  }
  function zoom(factor) {
    const { width, height } = room();
    go(zoomed(factor, width / 2, height / 2));
  }
  function jump(target) {
    cancelAnimationFrame(flight);
    fitted = false;
    Object.assign(place, target);
    show();
  }
  // The vertex in the middle, its parents and children in sight unless that makes it too small to read.
  function centre(v) {
    const { width, height } = room();
    const near = [v, ...into[v].map((k) => edges[k].parent), ...outOf[v].map((k) => edges[k].child)].map((other) => nodes[other]);
    const across = Math.max(...near.map((node) => Math.abs(node.x - nodes[v].x) + node.width / 2)) + 12;
    const down = Math.max(...near.map((node) => Math.abs(node.y - nodes[v].y))) + data.network.box;
    const k = Math.max(0.5, Math.min(1, width / 2 / across, height / 2 / down));
    go({ k, x: width / 2 - k * nodes[v].x, y: height / 2 - k * nodes[v].y });
  }

  function moving() {
    const pointers = new Map();
    let travelled = 0;
    let pressed = null;
    const local = (event) => {
      const box = picture.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    picture.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      if (pointers.size === 0) {
        travelled = 0;
        pressed = event.target.closest(".node");
      }
      picture.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, local(event));
      tell(null);
    });
    picture.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return void hover(event);
      const now = local(event);
      travelled += Math.hypot(now.x - before.x, now.y - before.y);
      const other = [...pointers].find(([id]) => id !== event.pointerId);
      pointers.set(event.pointerId, now);
      if (travelled < 4) return;
      picture.classList.add("dragging");
      if (other) {
        const [, fixed] = other;
        const factor = Math.hypot(now.x - fixed.x, now.y - fixed.y) / Math.max(1, Math.hypot(before.x - fixed.x, before.y - fixed.y));
        jump(zoomed(factor, (now.x + fixed.x) / 2, (now.y + fixed.y) / 2));
      } else jump({ k: place.k, x: place.x + now.x - before.x, y: place.y + now.y - before.y });
    });
    const release = (event) => {
      if (!pointers.delete(event.pointerId) || pointers.size) return;
      picture.classList.remove("dragging");
      if (event.type === "pointerup" && travelled < 4) {
        if (pressed) select(Number(pressed.dataset.vertex), false);
        else if (!hover(event)) clear();
      }
    };
    picture.addEventListener("pointerup", release);
    picture.addEventListener("pointercancel", release);
    picture.addEventListener("pointerleave", () => tell(null));
    picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      const { x, y } = local(event);
      const lines = event.deltaMode === 1 ? 20 : 1;
      jump(zoomed(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0022), x, y));
    }, { passive: false });
    picture.addEventListener("keydown", (event) => {
      const ways = { ArrowLeft: [70, 0], ArrowRight: [-70, 0], ArrowUp: [0, 70], ArrowDown: [0, -70] };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in ways) jump({ k: place.k, x: place.x + ways[event.key][0], y: place.y + ways[event.key][1] });
      else if (event.key === "+" || event.key === "=") zoom(1.4);
      else if (event.key === "-") zoom(1 / 1.4);
      else if (event.key === "0") fit();
      else if (event.key === "Escape") clear();
      else return;
      event.preventDefault();
    });
    at("zoom-in").addEventListener("click", () => zoom(1.4));
    at("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
    at("fit").addEventListener("click", fit);
    new ResizeObserver(() => fitted && jumpToFit()).observe(picture);
  }
  function jumpToFit() {
    jump(wholeView());
    fitted = true;
  }

  // The tooltip.

  function tell(lines, event) {
    const tip = at("tip");
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => html("p", {}, line)));
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const top = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
    tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }
  function hover(event) {
    const target = document.elementFromPoint(event.clientX, event.clientY);
    const edge = target && target.closest(".edge");
    const node = target && target.closest(".node");
    if (edge && view.contains(edge)) tell(edgeLines(edgeElements.indexOf(edge)), event);
    else if (node && view.contains(node)) tell(nodeLines(Number(node.dataset.vertex)), event);
    else tell(null);
    return Boolean(edge || node);
  }
  const isDirected = (k) => !(asClass && edges[k].reversible);
  const edgeName = (k) => `${nodes[edges[k].parent].name} ${isDirected(k) ? "→" : "—"} ${nodes[edges[k].child].name}`;
  function edgeLines(k) {
    const { reversible, forced, strength, confidence, weight } = edges[k];
    const lines = [edgeName(k)];
    if (reversible) lines.push("equivalent networks have either direction");
    if (forced) lines.push("direction set by the model: no number is a parent of states");
    if (weight !== undefined) lines.push(`weight ${signed(weight)}`);
    if (strength === "required") lines.push("required by the settings");
    else if (strength !== null) lines.push(`${score(strength)} of score lost without it`);
    if (confidence !== null) lines.push(`in ${frequency(confidence)} of the ${data.samples_are} networks`);
    return lines;
  }
  function nodeLines(v) {
    return [nodes[v].name, `${several(into[v].length, "parent", "parents")}, ${several(outOf[v].length, "child", "children")}`];
  }

  // What is shown: directions, strong edges, a part of the network.

  let asClass = data.class_only;
  let hiddenVersion = 0;
  let scope = "all"; // or "neighbours" or "blanket", of the selected vertex

  function directions(wanted) {
    asClass = wanted;
    edges.forEach((edge, k) => {
      const [line, head, hit] = edgeElements[k].children;
      const path = isDirected(k) ? edge.line : `${edge.line}V${edge.end}`;
      line.setAttribute("d", path);
      hit.setAttribute("d", path);
      head.style.display = isDirected(k) ? "" : "none";
    });
    at("as-dag").setAttribute("aria-pressed", String(!asClass));
    at("as-class").setAttribute("aria-pressed", String(asClass));
  }
  const neighboursOf = (v) => [...into[v].map((k) => edges[k].parent), ...outOf[v].map((k) => edges[k].child)];
  // Parents, children, and the other parents of the children.
  const blanketOf = (v) => [...neighboursOf(v), ...outOf[v].flatMap((k) => into[edges[k].child].map((other) => edges[other].parent))];

  function filter() {
    const near = selected === null || scope === "all" ? null : new Set([selected, ...(scope === "blanket" ? blanketOf : neighboursOf)(selected)]);
    const most = known ? Number(at("by-strength").querySelector("input").value) : edges.length;
    const strong = new Set(strongestFirst(edges.keys()).slice(0, most));
    const least = sure ? Number(at("by-confidence").querySelector("input").value) / 100 : 0;
    edges.forEach((edge, k) => {
      const keep = strong.has(k) && (edge.confidence ?? 1) >= least && (!near || (near.has(edge.parent) && near.has(edge.child)));
      edgeElements[k].classList.toggle("away", !keep);
    });
    nodes.forEach((_, v) => nodeElements[v].classList.toggle("away", Boolean(near) && !near.has(v)));
    hiddenVersion += 1;
    sliderTexts(most, strong, least);
    showLandmarks();
  }
  function sliderTexts(most, strong, least) {
    if (known) {
      const weakest = Math.min(...[...strong].map(weight));
      at("by-strength").firstChild.textContent = most === edges.length ? `All ${several(edges.length, "edge", "edges")}`
        : most === 0 ? "No edge" : `Strongest ${count(most)} of ${count(edges.length)}${Number.isFinite(weakest) ? `: loss ≥ ${three.format(weakest)}` : ""}`;
    }
    if (sure) at("by-confidence").firstChild.textContent = least === 0 ? "Any confidence" : `Confidence ≥ ${count(100 * least)} %`;
  }
  function filtering() {
    at("as-dag").addEventListener("click", () => directions(false));
    at("as-class").addEventListener("click", () => directions(true));
    directions(asClass);
    const slider = (id, shown) => {
      at(id).hidden = !shown;
      at(id).querySelector("input").addEventListener("input", filter);
      return at(id).querySelector("input");
    };
    const strength = slider("by-strength", known && edges.length > 1);
    strength.max = edges.length;
    strength.value = edges.length;
    slider("by-confidence", sure && edges.length > 1);
    filter();
  }

  // Saving.

  function save(name, kind, content) {
    const link = html("a", { download: `${fileName()}${name}`, href: URL.createObjectURL(new Blob([content], { type: kind })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const fileName = () => (data.title.split(":")[0].replace(/\.[a-z0-9]+$/i, "").replace(/[^\w.-]+/g, "_").slice(0, 60) || "network");
  // The picture as it is filtered, in the colours of the page, as a document of its own.
  function standalone() {
    const box = shownBox();
    const size = { width: Math.ceil(box.width), height: Math.ceil(box.height) };
    const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", ...size, viewBox: `${box.left} ${box.top} ${size.width} ${size.height}` });
    const colour = (name, element) => getComputedStyle(element).getPropertyValue(name);
    root.append(svg("rect", { x: box.left, y: box.top, ...size, fill: colour("background-color", picture) }));
    edges.forEach((edge, k) => {
      if (edgeElements[k].classList.contains("away")) return;
      const [line, head] = edgeElements[k].children;
      root.append(svg("path", { d: line.getAttribute("d"), fill: "none", stroke: colour("stroke", line), "stroke-width": edge.thickness, "stroke-opacity": line.getAttribute("stroke-opacity") }));
      if (isDirected(k)) root.append(svg("path", { d: edge.head, fill: colour("fill", head), "fill-opacity": head.getAttribute("fill-opacity") }));
    });
    nodes.forEach((node, v) => {
      if (nodeElements[v].classList.contains("away")) return;
      const [rect, text] = nodeElements[v].children;
      root.append(
        svg("rect", { x: node.x - node.width / 2, y: node.y - data.network.box / 2, width: node.width, height: data.network.box, rx: 7, fill: colour("fill", rect), stroke: colour("stroke", rect) }),
        svg("text", { x: node.x, y: node.y + 4.5, "text-anchor": "middle", "font-size": 13, "font-family": "system-ui, sans-serif", fill: colour("fill", text) }, node.label));
    });
    return { size, text: new XMLSerializer().serializeToString(root) };
  }
  function savePng() {
    const { size, text } = standalone();
    const scale = Math.min(2, 8192 / Math.max(size.width, size.height));
    const image = new Image();
    image.onload = () => {
      const canvas = html("canvas", { width: Math.round(size.width * scale), height: Math.round(size.height * scale) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(".png", "image/png", blob));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }
  function edgesAsCsv() {
    const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const rows = edges.map((edge) => [nodes[edge.parent].name, nodes[edge.child].name, edge.reversible ? "yes" : "no", edge.strength ?? "", edge.confidence ?? ""]);
    return [["parent", "child", "reversible", "strength", "confidence"], ...rows].map((row) => `${row.map((value) => quoted(String(value))).join(",")}\n`).join("");
  }
  function saving() {
    at("save-svg").addEventListener("click", () => save(".svg", "image/svg+xml", standalone().text));
    at("save-png").addEventListener("click", savePng);
    at("save-csv").addEventListener("click", () => save("-edges.csv", "text/csv", edgesAsCsv()));
    at("save-bif").hidden = data.bif === null;
    at("save-bif").addEventListener("click", () => save(".bif", "text/plain", data.bif));
  }

  // Selecting a vertex.

  let selected = null;

  function unmark() {
    picture.classList.remove("focused");
    for (const element of nodeElements) element.classList.remove("selected", "parent", "child", "match");
    for (const element of edgeElements) element.classList.remove("in", "out", "near");
  }
  function select(v, travel = true) {
    unmark();
    selected = v;
    filter();
    picture.classList.add("focused");
    nodeElements[v].classList.add("selected");
    for (const k of into[v]) emphasise(k, "in", edges[k].parent, "parent");
    for (const k of outOf[v]) emphasise(k, "out", edges[k].child, "child");
    view.append(nodeElements[v]);
    if (scope !== "all") fit();
    else if (travel) centre(v);
    vertexPanel(v);
  }
  function emphasise(k, way, v, role) {
    edgeElements[k].classList.add(way);
    nodeElements[v].classList.add(role);
  }
  function clear() {
    unmark();
    selected = null;
    scope = "all";
    filter();
    at("search").value = "";
    at("found").textContent = "";
    closeMatches();
    overviewPanel();
  }

  function edgeItem(k, label, v) {
    const { strength, confidence, weight } = edges[k];
    const share = strength === "required" ? 1 : strength === null ? null : strongest > 0 ? strength / strongest : 0;
    const numbers = [weight === undefined ? null : signed(weight), strength === null ? null : loss(strength), confidence === null ? null : frequency(confidence)].filter(Boolean);
    const meter = share === null ? null : html("span", { class: "meter" }, html("i"));
    if (meter) meter.firstChild.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
    return html(
      "li",
      { onpointerenter: () => edgeElements[k].classList.add("near"), onpointerleave: () => edgeElements[k].classList.remove("near") },
      html("button", { class: "link", type: "button", onclick: () => select(v) }, label),
      html("span", { class: "value" }, numbers.join(" · ")),
      meter,
    );
  }
  function edgesList(kind, list, end) {
    if (!list.length) return html("p", { class: "muted" }, "none");
    return html("ul", { class: `edges-list ${kind}` }, ...strongestFirst(list).map((k) => edgeItem(k, nodes[edges[k][end]].name, edges[k][end])));
  }
  function vertexPanel(v) {
    const facts = data.vertices ? data.vertices[v] : {};
    const told = [
      facts.gain === null || facts.gain === undefined ? null : `Gain ${score(facts.gain)}`,
      facts.candidates === null || facts.candidates === undefined ? null : several(facts.candidates, "candidate set", "candidate sets"),
      facts.subsets === null || facts.subsets === undefined ? null : several(facts.subsets, "subset", "subsets"),
    ].filter(Boolean);
    at("panel").replaceChildren(
      html("p", { class: "name" }, nodes[v].name),
      html("p", { class: "facts" }, told.join(" · ")),
      scopeButtons(v),
      ...states(v),
      html("h3", {}, `Parents (${count(into[v].length)})`, into[v].length ? numbersTold() : null),
      edgesList("parents", into[v], "parent"),
      html("h3", {}, `Children (${count(outOf[v].length)})`, outOf[v].length ? numbersTold() : null),
      edgesList("children", outOf[v], "child"),
      ...probabilities(v),
      ...weights(v),
      ...weightsByState(v),
      html("button", { class: "quiet", type: "button", onclick: () => { clear(); fit(); } }, "Back to the whole network"),
    );
    at("panel").scrollTop = 0;
  }

  function scopeButtons(v) {
    const kinds = [["all", "Everything"], ["neighbours", "Neighbours"], ["blanket", "Markov blanket"]];
    const choose = (kind) => {
      scope = kind;
      select(v, false);
      fit();
    };
    return html("div", { class: "buttons choice", role: "group", "aria-label": "Part of the network" },
      ...kinds.map(([kind, name]) => html("button", { type: "button", "aria-pressed": String(scope === kind), onclick: () => choose(kind) }, name)));
  }
  const probability = new Intl.NumberFormat("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  // The states of a vertex, with their share of the rows.
  function states(v) {
    const facts = data.parameters && data.parameters[v];
    if (!facts || !facts.arity) return [];
    const { marginal, arity } = facts;
    const bar = (share) => {
      const meter = html("span", { class: "meter" }, html("i"));
      meter.firstChild.style.width = `${100 * share}%`;
      return meter;
    };
    return [
      html("h3", {}, `States (${count(arity)})`, marginal ? html("span", {}, "share of rows") : null),
      html("ul", { class: "edges-list states" }, ...facts.states.map((state, k) =>
        html("li", {}, html("span", {}, state), html("span", { class: "value" }, marginal ? frequency(marginal[k]) : ""), marginal && bar(marginal[k]))),
      arity > facts.states.length ? html("li", {}, `and ${count(arity - facts.states.length)} more`) : null),
    ];
  }
  // The parameters of a continuous vertex: intercept, a weight for each parent, deviation.
  function weights(v) {
    const facts = data.parameters && data.parameters[v];
    if (!facts || !facts.linear) return [];
    const { intercept, weights: ofParents, deviation } = facts.linear;
    const row = (term, value) => html("tr", {}, html("td", { class: "given" }, term), html("td", { class: "number" }, value));
    const title = facts.given.length ? "Normal, with a mean linear in the parents" : "Normal";
    const body = [
      row("intercept", `${intercept}`),
      ...facts.given.map((p, k) => row(nodes[p].name, signed(ofParents[k]))),
      row("standard deviation", `${deviation}`),
    ];
    return [html("h3", {}, title), html("div", { class: "table-box cpt", tabindex: "0", role: "region", "aria-label": title },
      html("table", {}, html("tbody", {}, ...body)))];
  }
  // A continuous vertex with discrete parents: a row for each combination of their states.
  function weightsByState(v) {
    const facts = data.parameters && data.parameters[v];
    if (!facts || !facts.by_state) return [];
    const { states: discrete, numbers, rows } = facts.by_state;
    const terms = ["intercept", ...numbers.map((p) => nodes[p].name), "standard deviation"];
    const head = [...discrete.map((p) => html("th", { scope: "col", class: "given" }, nodes[p].name)), ...terms.map((term) => html("th", { scope: "col", class: "number" }, term))];
    const body = rows.map((row, k) => html("tr", {}, ...combination(discrete, k).map((state) => html("td", { class: "given" }, state)), ...row.map((value) => html("td", { class: "number" }, `${value}`))));
    const title = numbers.length ? "Normal, with a mean linear in the parents, by state" : "Normal, by state";
    return [html("h3", {}, title), html("div", { class: "table-box cpt", tabindex: "0", role: "region", "aria-label": title },
      html("table", {}, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...body)))];
  }
  // The states of discrete vertices in a row of a table; the last one counts up fastest.
  function combination(vertices, row) {
    return vertices.reduceRight(([rest, texts], p) => {
      const { states: own, arity } = data.parameters[p];
      return [Math.floor(rest / arity), [own[rest % arity] ?? "…", ...texts]];
    }, [row, []])[1];
  }
  // The table of a vertex: a row for each combination of its parents' states.
  function probabilities(v) {
    const facts = data.parameters && data.parameters[v];
    if (!facts || !facts.table || facts.arity > facts.states.length) return [];
    const given = facts.given.map((p) => nodes[p].name);
    const cell = (share) => {
      const element = html("td", { class: "number share" }, probability.format(share));
      element.style.setProperty("--share", `${Math.round(100 * share)}%`);
      return element;
    };
    const head = [...given.map((name) => html("th", { scope: "col", class: "given" }, name)), ...facts.states.map((state) => html("th", { scope: "col", class: "number" }, state))];
    const body = facts.table.map((row, k) => html("tr", {}, ...combination(facts.given, k).map((state) => html("td", { class: "given" }, state)), ...row.map(cell)));
    const title = given.length ? "Probabilities given the parents" : "Probabilities";
    return [html("h3", {}, title), html("div", { class: "table-box cpt", tabindex: "0", role: "region", "aria-label": title },
      html("table", {}, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...body)))];
  }

  function overviewPanel() {
    const legend = html("div", { class: "legend" });
    const sample = (text, ...lines) => legend.append(html("div", {}, svg("svg", { width: 46, height: 14, class: "edge" }, ...lines), text));
    const stroke = (width, y, opacity) => svg("path", { class: "line", d: `M2 ${y}H44`, "stroke-width": width, "stroke-opacity": opacity });
    if (known) sample("Thicker: dropping it loses more score", stroke(1.2, 3, 1), stroke(6, 10, 1));
    if (sure) sample(`Fainter: in fewer ${data.samples_are} networks`, stroke(2.5, 3, 0.3), stroke(2.5, 10, 1));
    if (!known && !sure) sample("From parent (above) to child (below)", stroke(1.6, 7, 1));
    const top = strongestFirst(edges.keys()).slice(0, 12);
    at("panel").replaceChildren(
      html("h3", {}, "How to read it"),
      legend,
      ...(known && top.length
        ? [html("h3", {}, "Strongest edges", numbersTold()), html("ul", { class: "edges-list" }, ...top.map((k) => edgeItem(k, edgeName(k), edges[k].child)))]
        : []),
    );
  }

  // Searching.

  const plain = (text) => text.normalize("NFKC").toLocaleLowerCase();
  const plainNames = nodes.map((node) => plain(node.name));
  let options = [];
  let active = -1;

  function matching(text) {
    const wanted = plain(text.trim());
    if (!wanted) return [];
    const rank = (v) => (plainNames[v] === wanted ? 0 : plainNames[v].startsWith(wanted) ? 1 : 2);
    return nodes.map((_, v) => v).filter((v) => plainNames[v].includes(wanted)).sort((a, b) => rank(a) - rank(b) || a - b);
  }
  function closeMatches() {
    at("matches").hidden = true;
    at("search").setAttribute("aria-expanded", "false");
    at("search").removeAttribute("aria-activedescendant");
    active = -1;
  }
  function openMatches() {
    at("matches").replaceChildren(
      ...options.map((v, k) =>
        html("li", { role: "option", id: `match-${k}`, "aria-selected": k === active, onpointerdown: (event) => { event.preventDefault(); choose(v); } }, nodes[v].name)),
    );
    at("matches").hidden = options.length === 0;
    at("search").setAttribute("aria-expanded", String(options.length > 0));
    if (active >= 0) at("search").setAttribute("aria-activedescendant", `match-${active}`);
  }
  function choose(v) {
    at("search").value = nodes[v].name;
    at("found").textContent = "";
    closeMatches();
    select(v);
  }
  function look() {
    const found = matching(at("search").value);
    options = found.slice(0, 8);
    active = -1;
    if (!at("search").value.trim()) return clear();
    at("found").textContent = found.length ? several(found.length, "match", "matches") : "no match";
    if (found.length && (found.length === 1 || plainNames[found[0]] === plain(at("search").value.trim()))) {
      select(found[0]);
      if (found.length === 1) return closeMatches();
    } else {
      unmark();
      picture.classList.toggle("focused", found.length > 0);
      for (const v of found) nodeElements[v].classList.add("match");
    }
    openMatches();
  }
  function searching() {
    const box = at("search");
    box.addEventListener("input", look);
    box.addEventListener("focus", () => { if (box.value && options.length && selected === null) openMatches(); });
    box.addEventListener("blur", closeMatches);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return clear();
      if (event.key === "Enter" && options.length) return choose(options[Math.max(active, 0)]);
      if ((event.key !== "ArrowDown" && event.key !== "ArrowUp") || !options.length) return;
      event.preventDefault();
      active = (active + (event.key === "ArrowDown" ? 1 : options.length) + (active < 0 && event.key === "ArrowUp" ? 1 : 0)) % options.length;
      openMatches();
    });
  }

  // Score against time.

  function steps(low, high, wanted) {
    const raw = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
    return ticks;
  }
  function decades(low, high) {
    const all = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 1.0001; power += 1) {
      for (const factor of [1, 2, 5]) all.push({ factor, value: factor * 10 ** power });
    }
    const inside = all.filter(({ value }) => value >= low * 0.9999 && value <= high * 1.0001);
    const round = inside.filter(({ factor }) => factor === 1);
    const few = round.length >= 3 ? round : inside;
    const skip = Math.ceil(few.length / 7);
    return few.filter((_, k) => k % skip === 0).map(({ value }) => value);
  }

  function chart() {
    const { trace } = data;
    if (!trace || !trace.length) return;
    at("progress").hidden = false;
    const bound = data.outcome ? data.outcome.bound : null;
    const box = at("trace");
    const positive = trace.map(([seconds]) => seconds).filter((seconds) => seconds > 0);
    const last = Math.max(trace[trace.length - 1][0], 1e-3);
    const first = Math.max(Math.min(...positive, last), last / 1e6);
    const log = last / first > 30;
    const scores = trace.map(([, value]) => value);
    const reached = trace[trace.length - 1][1];
    const lowest = Math.min(...scores);
    const high = Math.max(...scores, bound ?? -Infinity);
    // Most of the gain comes in the first moments; the end is what tells one run from another.
    const interesting = Math.max(lowest, reached - Math.max(0.03 * (reached - lowest), 2 * (high - reached)));
    const zoomable = interesting - lowest > 0.25 * (high - lowest);
    let entire = !zoomable;
    let bottom = 0;
    let top = 1;
    const told = [`${score(reached)} after ${duration(last)}`];
    if (bound !== null) told.push(`no network scores more than ${score(bound)}`);
    const toggle = at("whole-trace");
    toggle.hidden = !zoomable;
    toggle.addEventListener("click", () => {
      entire = !entire;
      render();
    });

    function render() {
      const low = entire ? lowest : interesting;
      const margin = (high - low || Math.abs(high) || 1) * 0.06;
      bottom = low - margin;
      top = high + margin;
      toggle.setAttribute("aria-pressed", String(entire));
      const part = entire ? "" : ` Only scores above ${score(interesting)} are shown.`;
      at("trace-caption").textContent = `${told.join("; ")}.${part}${log ? " Time on a logarithmic scale." : ""}`;
      const width = Math.max(box.clientWidth, 200);
      const height = box.clientHeight || 260;
      const digits = steps(bottom, top, 6);
      const labels = digits.map((value) => minus(whole.format(value)));
      const fine = new Set(labels).size < labels.length;
      const named = fine ? digits.map((value) => minus(three.format(value - digits[0]))) : labels;
      const left = 14 + 7.2 * Math.max(...(fine ? digits.map((value) => score(value).length) : named.map((text) => text.length)));
      const area = { left, right: width - 14, top: bound === null ? 10 : 16, bottom: height - 26 };
      const scaleX = (seconds) => {
        const clamped = Math.max(seconds, log ? first : 0);
        const share = log ? Math.log(clamped / first) / Math.log(last / first) : clamped / last;
        return area.left + (area.right - area.left) * share;
      };
      const scaleY = (value) => area.bottom - ((area.bottom - area.top) * (value - bottom)) / (top - bottom);
      const drawing = svg("svg", { role: "img", "aria-label": at("trace-caption").textContent });
      digits.forEach((value, k) => {
        const y = scaleY(value).toFixed(1);
        drawing.append(svg("line", { class: "grid", x1: area.left, x2: area.right, y1: y, y2: y }));
        drawing.append(svg("text", { x: area.left - 8, y: Number(y) + 4, "text-anchor": "end" }, fine ? score(value) : named[k]));
      });
      const ticks = log ? decades(first, last) : steps(0, last, Math.max(2, Math.min(6, width / 110)));
      for (const seconds of ticks) {
        const x = scaleX(seconds);
        const anchor = x > area.right - 14 ? "end" : x < area.left + 14 ? "start" : "middle";
        drawing.append(svg("text", { x: x.toFixed(1), y: height - 6, "text-anchor": anchor }, seconds ? duration(seconds) : "0"));
      }
      const points = trace.map(([seconds, value]) => [scaleX(seconds), Math.min(scaleY(value), area.bottom)]);
      let line = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
      for (const [x, y] of points.slice(1)) line += `H${x.toFixed(1)}V${y.toFixed(1)}`;
      line += `H${area.right}`;
      drawing.append(svg("path", { class: "area", d: `${line}V${area.bottom}H${points[0][0].toFixed(1)}Z` }));
      drawing.append(svg("path", { class: "score", d: line }));
      if (bound !== null) {
        const y = scaleY(bound).toFixed(1);
        drawing.append(svg("line", { class: "bound", x1: area.left, x2: area.right, y1: y, y2: y }));
        drawing.append(svg("text", { class: "bound-label", x: area.right, y: Number(y) - 6, "text-anchor": "end" }, "bound"));
      }
      const cursor = svg("line", { class: "cursor", y1: area.top, y2: area.bottom, visibility: "hidden" });
      const dot = svg("circle", { class: "dot", r: 4.5, visibility: "hidden" });
      drawing.append(cursor, dot);
      drawing.addEventListener("pointermove", (event) => {
        const x = event.clientX - drawing.getBoundingClientRect().left;
        const k = Math.max(0, points.findLastIndex(([px]) => px <= x));
        cursor.setAttribute("x1", points[k][0]);
        cursor.setAttribute("x2", points[k][0]);
        dot.setAttribute("cx", points[k][0]);
        dot.setAttribute("cy", points[k][1]);
        for (const mark of [cursor, dot]) mark.setAttribute("visibility", "visible");
        tell([score(trace[k][1]), `after ${duration(trace[k][0])}`], event);
      });
      drawing.addEventListener("pointerleave", () => {
        for (const mark of [cursor, dot]) mark.setAttribute("visibility", "hidden");
        tell(null);
      });
      box.replaceChildren(drawing);
    }
    new ResizeObserver(render).observe(box);
    render();
  }

  // Bits by kind.

  function bars() {
    const { bits } = data;
    if (!bits) return;
    at("size").hidden = false;
    const kinds = [["u", "Subsets", "u bits"], ["r", "Order", "r bits"], ["z", "Auxiliary", "z bits"], ["total", "All", "bits"]];
    const most = Math.max(1, bits.ours ? bits.ours.total : 0, bits.paper ? bits.paper.total : 0);
    const bar = (side, kind) => {
      if (!bits[side]) return null;
      const value = bits[side][kind];
      const stripe = html("i");
      stripe.style.width = `calc((100% - 76px) * ${value / most})`;
      return html("div", { class: `bar ${side}` }, stripe, count(value));
    };
    at("bits").replaceChildren(
      html("div", { class: "bars" }, ...kinds.flatMap(([kind, name, letter]) => [
        html("div", { class: "kind" }, name, html("span", {}, letter)),
        html("div", { class: "pairs" }, ...["ours", "paper"].map((side) => bar(side, kind)).filter(Boolean)),
      ])),
      html("div", { class: "keys" }, bits.ours && html("span", {}, "this run"), bits.paper && html("span", { class: "paper" }, "the paper’s formulation")),
    );
    if (bits.ours && bits.paper) {
      at("bits-caption").textContent = `${count(bits.ours.total)} bits, ${comparison(bits)} for the same subsets (${count(bits.paper.total)}).`;
    }
  }

  // Tables.

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" ? a - b : collator.compare(a, b);
  }

  // columns: { name, number, value(row) to sort by, cell(row) to show }
  function table(section, title, noun, columns, rows, texts) {
    const filter = html("input", { type: "search", "aria-label": `Filter ${noun[1]}`, placeholder: `Filter ${noun[1]}`, autocomplete: "off", spellcheck: "false" });
    const told = html("span", { class: "muted", role: "status" });
    const body = html("tbody");
    const elements = rows.map((row) => html("tr", {}, ...columns.map((column) => html("td", { class: column.number && "number" }, column.cell(row)))));
    const heads = columns.map((column) => html("th", { scope: "col", class: column.number && "number" }, html("button", { type: "button", onclick: () => sort(column) }, column.name)));
    const sorting = { column: null, down: false };
    let order = rows.map((_, k) => k);
    const plainTexts = texts.map(plain);

    function refresh() {
      const wanted = plain(filter.value.trim());
      const kept = order.filter((k) => plainTexts[k].includes(wanted));
      body.replaceChildren(...kept.map((k) => elements[k]));
      told.textContent = wanted ? `${count(kept.length)} of ${several(rows.length, ...noun)}` : several(rows.length, ...noun);
    }
    function sort(column) {
      sorting.down = sorting.column === column ? !sorting.down : Boolean(column.number);
      sorting.column = column;
      const values = rows.map(column.value);
      const sign = sorting.down ? -1 : 1;
      order = rows.map((_, k) => k).sort((a, b) => {
        const unknown = (values[a] === null) - (values[b] === null);
        return unknown || sign * compare(values[a], values[b]) || a - b;
      });
      heads.forEach((element, k) => {
        if (columns[k] === column) element.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
        else element.removeAttribute("aria-sort");
      });
      refresh();
    }
    filter.addEventListener("input", refresh);
    refresh();
    section.hidden = false;
    section.replaceChildren(
      html("div", { class: "card-head" }, html("h2", { id: `${section.id}-title` }, title), told, html("div", { class: "filter" }, filter)),
      html("div", { class: "table-box", tabindex: "0", role: "region", "aria-labelledby": `${section.id}-title` }, html("table", {}, html("thead", {}, html("tr", {}, ...heads)), body)),
    );
  }

  function visit(v) {
    at("network").scrollIntoView({ behavior: still ? "auto" : "smooth", block: "start" });
    select(v);
  }
  const vertexLink = (v) => html("button", { class: "link", type: "button", onclick: () => visit(v) }, nodes[v].name);
  const parentsOf = (v) => strongestFirst(into[v]).map((k) => edges[k].parent);

  function vertexTable() {
    const isKnown = (key) => data.vertices && data.vertices.some((facts) => facts[key] !== null);
    const fact = (key, name, shown) => isKnown(key) && {
      name, number: true, value: (v) => data.vertices[v][key],
      cell: (v) => (data.vertices[v][key] === null ? "" : shown(data.vertices[v][key])),
    };
    const columns = [
      { name: "Vertex", value: (v) => nodes[v].name, cell: vertexLink },
      { name: "Parents", value: (v) => into[v].length, cell: (v) => html("span", { class: "many" }, ...parentsOf(v).map(vertexLink)) },
      { name: "Children", number: true, value: (v) => outOf[v].length, cell: (v) => count(outOf[v].length) },
      fact("gain", "Gain", score),
      fact("candidates", "Candidate sets", count),
      fact("subsets", "Subsets", count),
    ].filter(Boolean);
    const texts = nodes.map((node, v) => [node.name, ...parentsOf(v).map((p) => nodes[p].name)].join("\n"));
    table(at("vertices"), "Vertices", ["vertex", "vertices"], columns, nodes.map((_, v) => v), texts);
  }
  function edgeTable() {
    if (!known && !sure) return;
    const columns = [
      { name: "Parent", value: (k) => nodes[edges[k].parent].name, cell: (k) => vertexLink(edges[k].parent) },
      { name: "Child", value: (k) => nodes[edges[k].child].name, cell: (k) => vertexLink(edges[k].child) },
      known && { name: "Strength", number: true, value: (k) => (edges[k].strength === null ? null : weight(k)), cell: (k) => (edges[k].strength === null ? "" : loss(edges[k].strength)) },
      sure && { name: "Confidence", number: true, value: (k) => edges[k].confidence, cell: (k) => (edges[k].confidence === null ? "" : frequency(edges[k].confidence)) },
    ].filter(Boolean);
    const texts = edges.map(({ parent, child }) => `${nodes[parent].name}\n${nodes[child].name}`);
    table(at("edges"), "Edges", ["edge", "edges"], columns, strongestFirst(edges.keys()), strongestFirst(edges.keys()).map((k) => texts[k]));
  }

  // The consensus of the resamplings, and the edges on which networks close to the best differ, beside the network.

  function comparedEdges(id, title, share, found, caption) {
    const ways = { same: ["good", "yes"], turned: ["", "in the other direction"], absent: ["other", "no"] };
    const mark = ({ learned }) => html("span", { class: `badge ${ways[learned][0]}` }, ways[learned][1]);
    const columns = [
      { name: "Parent", value: ({ parent }) => nodes[parent].name, cell: ({ parent }) => vertexLink(parent) },
      { name: "Child", value: ({ child }) => nodes[child].name, cell: ({ child }) => vertexLink(child) },
      { name: share, number: true, value: (edge) => edge.frequency, cell: (edge) => frequency(edge.frequency) },
      { name: "In the learned network", value: ({ learned }) => ways[learned][1], cell: mark },
    ];
    const texts = found.map(({ parent, child }) => `${nodes[parent].name}\n${nodes[child].name}`);
    table(at(id), title, ["edge", "edges"], columns, found, texts);
    at(id).append(html("p", { class: "hint" }, caption));
  }
  function consensusTable() {
    const { consensus } = data;
    if (!consensus) return;
    const title = `Consensus of ${several(consensus.samples, "resampling", "resamplings")}`;
    comparedEdges("consensus", title, "Frequency", consensus.edges, consensusCaption(consensus.edges));
  }
  function closeTable() {
    const { close } = data;
    if (!close) return;
    const title = `Edges in doubt among ${several(close.networks, "network", "networks")} close to the best`;
    comparedEdges("close", title, "Probability", close.edges, close.facts);
  }
  // Edges by posterior probability, and a heat map of them: parents in rows, children in columns, in the order of the network.

  function posteriorTable() {
    const { posterior } = data;
    if (!posterior) return;
    const share = (name, key) => ({ name, number: true, value: (edge) => edge[key], cell: (edge) => (edge[key] === null ? "" : frequency(edge[key])) });
    const ways = { same: "yes", turned: "in the other direction", absent: "no" };
    const columns = [
      { name: "Parent", value: ({ parent }) => nodes[parent].name, cell: ({ parent }) => vertexLink(parent) },
      { name: "Child", value: ({ child }) => nodes[child].name, cell: ({ child }) => vertexLink(child) },
      share("Probability", "frequency"),
      share("Error", "error"),
      share("Either direction", "joined"),
      posterior.edges.some(({ bootstrap }) => bootstrap !== null) && share("Bootstrap", "bootstrap"),
      { name: "In the learned network", value: ({ learned }) => ways[learned], cell: ({ learned }) => ways[learned] },
    ].filter(Boolean);
    const texts = posterior.edges.map(({ parent, child }) => `${nodes[parent].name}\n${nodes[child].name}`);
    table(at("posterior"), "Edges by posterior probability", ["edge", "edges"], columns, posterior.edges, texts);
    at("posterior").append(heatMap(posterior), html("p", { class: "hint" }, posterior.facts));
  }
  function heatMap({ edges: found, order }) {
    const side = 10;
    const size = side * order.length;
    const place = new Map(order.map((vertex, k) => [vertex, side * k]));
    const drawing = svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "Heat map of edge probabilities: parents in rows, children in columns" });
    drawing.append(svg("rect", { class: "field", width: size, height: size }));
    for (const edge of found) {
      const lines = [`${nodes[edge.parent].name} → ${nodes[edge.child].name}`, frequency(edge.frequency)];
      drawing.append(svg("rect", {
        class: "cell", x: place.get(edge.child), y: place.get(edge.parent), width: side, height: side, "fill-opacity": edge.frequency,
        onpointermove: (event) => tell(lines, event), onpointerleave: () => tell(null),
      }));
    }
    return html("div", { class: "heat" }, drawing);
  }
  function consensusCaption(found) {
    const number = (way) => count(found.filter(({ learned }) => learned === way).length);
    const what = "Edges in more than half of the networks learned from resampled rows, without those that would close a cycle. The frequency counts both directions, as data often cannot tell them apart.";
    return `${what} The learned network has ${number("same")} of them, ${number("turned")} in the other direction, and lacks ${number("absent")}.`;
  }

  // Provenance and theme.

  function provenance() {
    if (!data.provenance.length) return;
    at("provenance").hidden = false;
    at("sources").append(...data.provenance.map(([section, entries]) =>
      html("div", {}, html("h3", {}, section), html("dl", {}, ...entries.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, told(value))])))));
  }
  function told(value) {
    if (value === null) return "not given";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return typeof value === "number" ? minus(value.toLocaleString("en-US", { maximumFractionDigits: 9 })) : value;
  }
  function theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
    const name = () => { at("theme").textContent = isDark() ? "Light" : "Dark"; };
    at("theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      name();
    });
    dark.addEventListener("change", name);
    name();
  }

  head();
  tiles();
  draw();
  drawMap();
  moving();
  filtering();
  saving();
  searching();
  overviewPanel();
  chart();
  bars();
  vertexTable();
  edgeTable();
  consensusTable();
  closeTable();
  posteriorTable();
  provenance();
  theme();
  jumpToFit();
  requestAnimationFrame(() => document.documentElement.setAttribute("data-ready", ""));
})();
