"use strict";
// All text from the logs becomes text nodes, never markup. Rows are made when they are shown, 50 at a time.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const many = data.models.length !== 1;
  const STEP = 50;
  const FIRST_ROWS = 10;
  const CLASSES = { failed: "failed", "exported with warnings": "warned", exported: "exported" };
  const COLOURS = { failed: "error", "exported with warnings": "warning", exported: "good" };

  const element = (tag, name, ...children) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  };
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const number = (count) => count.toLocaleString("en");
  const models = (count) => `${number(count)} ${count === 1 ? "model" : "models"}`;
  const button = (text, pressed, action) => {
    const made = element("button", "", text);
    made.type = "button";
    if (pressed !== null) made.setAttribute("aria-pressed", pressed);
    made.addEventListener("click", action);
    return made;
  };

  /* A fold whose content is made when it is first opened. */
  const fold = (title, content, open = false) => {
    const made = element("details", "", element("summary", "", ...[title].flat()));
    const fill = () => {
      if (made.open && made.children.length === 1) made.append(...[content()].flat());
    };
    made.open = open;
    fill();
    made.addEventListener("toggle", fill);
    return made;
  };
  const block = (text, name) => element("pre", name || "", text);

  /* A sentence with what stands in quotes or backticks as code. */
  const prose = (text) => {
    const parts = text.split(/(`[^`]+`|(?<![^\s(])'[^']+'(?![^\s.,;:)]))/);
    return parts.map((part, index) => (index % 2 ? element("code", "", part.slice(1, -1)) : part)).filter((part) => part !== "");
  };

  const excerpt = (finding) => {
    const [before, inside, after] = finding.code;
    if (!before && !inside && !after) return null;
    return element("pre", "", element("span", "gutter", `${finding.line} | `), before, element("mark", "", inside), after);
  };

  const diff = ([place, removed, added]) => [
    element("div", "path", place),
    element(
      "pre",
      "diff",
      ...removed.map((line) => element("span", "removed", `- ${line}`)),
      ...added.map((line) => element("span", "added", `+ ${line}`)),
    ),
  ];

  const fix = (each) =>
    element(
      "div",
      "fix",
      element("p", "", element("strong", "", "Fix"), ` (${each.confidence}): `, ...prose(each.description)),
      each.snippet ? block(each.snippet) : null,
      ...each.edits.flatMap(diff),
    );

  const note = (text) => {
    const [first, ...rest] = text.split("\n");
    return rest.length ? fold(["Note: ", ...prose(first)], () => block(rest.join("\n")), true) : element("p", "", "Note: ", ...prose(first));
  };

  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  /* Each node below those that feed it. */
  const ranks = (graph) => {
    const rank = graph.nodes.map(() => 0);
    for (let round = 0; round < graph.nodes.length; round += 1) {
      for (const [source, target] of graph.edges) rank[target] = Math.min(Math.max(rank[target], rank[source] + 1), graph.nodes.length);
    }
    return rank;
  };

  const picture = (graph) => {
    const rank = ranks(graph);
    const width = 7.4 * Math.max(12, ...graph.nodes.flat().map((text) => text.length)) + 16;
    const rows = [...new Set(rank)].sort((one, other) => one - other).map((each) => rank.flatMap((of, index) => (of === each ? [index] : [])));
    const total = Math.max(...rows.map((row) => row.length)) * (width + 20) + 20;
    const height = (index) => graph.nodes[index].length * 16 + 12;
    const at = [];
    let top = 10;
    for (const row of rows) {
      const left = (total - row.length * (width + 20) + 20) / 2;
      row.forEach((index, column) => { at[index] = { x: left + column * (width + 20), y: top }; });
      top += Math.max(...row.map(height)) + 34;
    }
    const lines = graph.edges.map(([source, target]) =>
      svg("path", { d: `M${at[source].x + width / 2},${at[source].y + height(source)} L${at[target].x + width / 2},${at[target].y}` }));
    const boxes = graph.nodes.map((texts, index) =>
      svg("g", index === graph.marked ? { class: "marked" } : {},
        svg("rect", { x: at[index].x, y: at[index].y, width, height: height(index), rx: 6 }),
        ...texts.map((text, line) => svg("text", { x: at[index].x + width / 2, y: at[index].y + 18 + line * 16 }, text))));
    return svg("svg", { class: "picture", role: "img", width: total, viewBox: `0 0 ${total} ${top - 20}` }, ...lines, ...boxes);
  };

  /* The differences along the model, on a logarithmic scale, with the tolerance as a dashed line and the operators that are to blame. */
  const curve = ({ points }) => {
    const [width, height, left, right, top] = [960, 240, 56, 12, 14];
    const heights = points.flatMap(([difference, tolerance]) => [difference, tolerance]);
    const [lowest, highest] = [Math.floor(Math.min(...heights)), Math.max(Math.ceil(Math.max(...heights)), Math.floor(Math.min(...heights)) + 1)];
    const x = (index) => left + ((width - left - right) * (index + 0.5)) / points.length;
    const y = (value) => top + ((highest - value) * height) / (highest - lowest);
    const path = (name, values) =>
      svg("path", { class: name, d: values.map((value, index) => `${index ? "L" : "M"}${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ") });
    const grid = Array.from({ length: highest - lowest + 1 }, (_, index) => lowest + index).map((power) =>
      svg("g", { class: "grid" },
        svg("path", { d: `M${left},${y(power)} H${width - right}` }),
        svg("text", { x: left - 8, y: y(power) + 4 }, `1e${power}`)));
    const blamed = points.flatMap(([difference, , told], index) => told ? [svg("g", { class: "blamed" },
      svg("circle", { cx: x(index), cy: y(difference), r: 4 }),
      svg("text", { x: x(index) + (index > points.length / 2 ? -8 : 8), y: y(difference) + 4, "text-anchor": index > points.length / 2 ? "end" : "start" }, told))] : []);
    return svg("svg", { class: "curve", role: "img", viewBox: `0 0 ${width} ${height + top + 26}` }, ...grid,
      path("tolerance", points.map(([, tolerance]) => tolerance)), path("difference", points.map(([difference]) => difference)), ...blamed,
      svg("text", { class: "axis", x: width - right, y: height + top + 20 }, "operators, in the order of execution"));
  };

  const table = (head, rows) =>
    element("table", "", element("tr", "", ...head.map((text) => element("th", "", text))),
      ...rows.map((row) => element("tr", row.at(-1) ? "blamed" : "", ...row.map((text) => element("td", "", text)))));
  const LAYERS = ["Layer", "Operators", "Largest difference", "Own difference of an operator", "Tolerance", "To blame"];

  const showFinding = (finding) =>
    element(
      "article",
      `finding ${finding.level}`,
      element("h3", "", element("span", "level", `${capital(finding.level)} ${finding.rule}`), ` ${finding.title}`),
      element("p", "", ...prose(finding.message)),
      element("div", "path", finding.place),
      excerpt(finding),
      finding.places.length ? element("ul", "", ...finding.places.map((place) => element("li", "", place))) : null,
      ...finding.notes.map(note),
      ...finding.fixes.map(fix),
      finding.graph ? fold("The graph around it", () => picture(finding.graph)) : null,
      ...finding.folds.map(([title, text]) => fold(title, () => block(text))),
    );

  const stages = (model) => {
    const longest = Math.max(...model.stages.map(([, seconds]) => seconds));
    return element("div", "stages", ...model.stages.flatMap(([name, seconds, completed]) => {
      const part = element("i", completed ? "" : "failed");
      part.style.width = `${(100 * seconds) / longest}%`;
      const told = `${seconds.toFixed(3)} s${completed ? "" : ", failed"}`;
      return [element("span", "", name), element("div", "track", part), element("span", "faint", told)];
    }));
  };

  const showModel = (model) => [
    many ? element("p", "", element("strong", "", model.verdict), `: ${model.summary} `, element("span", "faint", model.when)) : null,
    ...model.findings.map((index) => showFinding(data.findings[index])),
    model.files.length ? element("ul", "", ...model.files.map((file) => element("li", "path", file))) : null,
    model.command ? fold("To reproduce", () => block(model.command)) : null,
    model.picture ? fold("The exported model", () => {
      const made = element("img", "picture");
      made.alt = "The modules of the model, and the shapes that flow between them";
      made.src = `data:image/svg+xml,${encodeURIComponent(model.picture)}`;
      return made;
    }) : null,
    model.differences ? fold("Where results diverge, operator by operator", () => [
      curve(model.differences),
      element("p", "faint", "The largest difference from eager PyTorch behind each operator, and the tolerance (dashed)."),
      table(LAYERS, model.differences.layers),
    ]) : null,
    ...model.folds.map(([title, text]) => fold(title, () => block(text))),
    fold("Versions and options", () => block(data.settings[model.setting])),
    model.stages.length ? fold("Stage times", () => stages(model)) : null,
  ].filter((part) => part !== null);

  /* A list that shows its first rows, and more of them on demand. */
  const list = (items, row, first = STEP) => {
    const rows = element("div", "rows");
    const whole = element("div", "", rows);
    const more = button("", null, () => grow());
    more.classList.add("more");
    let shown = 0;
    const grow = (step = STEP) => {
      rows.append(...items.slice(shown, shown + step).map(row));
      shown = Math.min(shown + step, items.length);
      const left = items.length - shown;
      more.textContent = left > STEP ? `Show ${STEP} more of ${number(left)}` : `Show ${left} more`;
      if (shown < items.length) whole.append(more);
      else more.remove();
    };
    grow(first);
    return whole;
  };
  const row = (summary, content) => fold(summary, () => element("div", "body", ...[content()].flat()));

  /* Where a cause is, for a row: a long path keeps its ends. */
  const where = (cluster) => {
    const parts = cluster.where.split("/");
    return element("code", "", cluster.where.length > 60 && parts.length > 2 ? `${parts[0]}/\u2026/${parts.at(-1)}` : cluster.where);
  };
  const cause = (cluster) => (cluster ? [` ${cluster.rule} `, where(cluster)] : []);

  // What the list of models shows.
  const chosen = { text: "", outcome: "", change: "", cluster: -1 };
  const texts = data.models.map((model) =>
    [model.name, ...model.clusters.flatMap((index) => [data.clusters[index].rule, data.clusters[index].title, data.clusters[index].where])]
      .join("\n").toLowerCase());
  const matches = (model, index) =>
    (!chosen.outcome || model.outcome === chosen.outcome) &&
    (!chosen.change || model.change === chosen.change) &&
    (chosen.cluster < 0 || model.clusters.includes(chosen.cluster)) &&
    chosen.text.toLowerCase().split(/\s+/).every((word) => texts[index].includes(word));

  const search = element("input", "");
  search.type = "search";
  search.placeholder = "Search names, rules, operators, files";
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => { chosen.text = search.value.trim(); showModels(); });
  const tools = element("div", "tools");
  const places = element("div", "");

  const filters = (kind, counts) =>
    Object.entries(counts).filter(([, count]) => count).map(([value, count]) =>
      button(`${capital(value)} ${number(count)}`, chosen[kind] === value, () => {
        chosen[kind] = chosen[kind] === value ? "" : value;
        showModels();
      }));

  const showModels = () => {
    const found = data.models.filter(matches);
    const cluster = data.clusters[chosen.cluster];
    const focused = document.activeElement === search;
    tools.replaceChildren(
      search,
      ...filters("outcome", data.counts),
      ...filters("change", data.changes),
      ...(cluster ? [button(`${cluster.rule} ${cluster.where} \u00d7`, true, () => { chosen.cluster = -1; showModels(); })] : []),
      element("span", "faint", found.length === data.models.length ? "" : `${number(found.length)} of ${models(data.models.length)}`),
    );
    if (focused) search.focus();
    places.replaceChildren(found.length ? list(found, modelRow) : element("p", "faint", "No model matches."));
  };

  const modelRow = (model) =>
    row(
      [
        element("span", `tag ${COLOURS[model.outcome]}`, model.outcome),
        element("span", "grow", element("strong", "", model.name), ...(model.outcome === "failed" ? cause(data.clusters[model.clusters[0]]) : [])),
        model.change ? element("span", "tag note", model.change) : "",
        element("span", "faint", model.summary),
      ],
      () => showModel(model),
    );

  const clusterRow = (cluster, index) =>
    row(
      [
        element("span", `number ${cluster.blocked ? "error" : "faint"}`, number(cluster.blocked || cluster.touched)),
        element("span", "grow", element("strong", cluster.level, cluster.rule), ` ${cluster.title} `, where(cluster)),
        cluster.new ? element("span", "tag note", "new") : "",
      ],
      () => {
        const having = data.models.filter((model) => model.clusters.includes(index));
        const told = `Blocks ${models(cluster.blocked)}, found in ${models(cluster.touched)}: `;
        return [
          cluster.smallest ? element("p", "", "Smallest model: ", element("strong", "", cluster.smallest)) : "",
          element("p", "", told, having.slice(0, 20).map((model) => model.name).join(", "), having.length > 20 ? ", ..." : ""),
          button(`Show ${having.length === 1 ? "it" : "them"} in the list of models`, null, () => {
            chosen.cluster = index;
            showModels();
            document.getElementById("models").scrollIntoView();
          }),
          showFinding(data.findings[cluster.finding]),
        ];
      },
    );

  const familyRow = (family, index) => {
    const good = element("i", "exported");
    good.style.width = `${(100 * (family.models - family.failed)) / family.models}%`;
    return row(
      [
        element("span", "track share", good),
        element("span", "grow", element("strong", "", family.name), ...(family.failed ? cause(data.clusters[family.cluster]) : [])),
        element("span", "faint", `${number(family.models - family.failed)} of ${models(family.models)} exported`),
      ],
      () => list(data.models.filter((model) => model.family === index), modelRow),
    );
  };

  const bar = () =>
    element("div", "bar", ...Object.entries(data.counts).filter(([, count]) => count).map(([outcome, count]) => {
      const part = element("i", CLASSES[outcome]);
      part.style.flex = String(count);
      part.title = `${number(count)} ${outcome}`;
      return part;
    }));

  const overview = () => {
    const heading = element("h2", "", "Models");
    heading.id = "models";
    showModels();
    const indices = new Map(data.clusters.map((cluster, index) => [cluster, index]));
    const families = data.families.length ? [element("h2", "", "Models by family"), list(data.families, familyRow, FIRST_ROWS)] : [];
    const section = (title, clusters) =>
      clusters.length ? [element("h2", "", title), list(clusters, (cluster) => clusterRow(cluster, indices.get(cluster)), FIRST_ROWS)] : [];
    return [
      bar(),
      ...section("What blocks the most models", data.clusters.filter((cluster) => cluster.blocked)),
      ...families,
      heading,
      tools,
      places,
      ...section("What else was found", data.clusters.filter((cluster) => !cluster.blocked)),
    ];
  };

  const [first] = data.models;
  page.replaceChildren(
    element("h1", "", data.verdict),
    element("p", "faint", many ? data.told : `${capital(first.summary)} ${first.when}, ${data.told}`),
    data.trend ? element("p", "", data.trend) : "",
    ...(many ? overview() : showModel(first)),
  );
  // The milliseconds from the start of loading to here.
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
