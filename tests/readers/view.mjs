// Opens logs in the viewer, one after the other, and prints as JSON what a user sees of each.
// It reads from its standard input: {"browser": path, "script": path, "logs": [{"path": path, "picture": path or null}]}.
import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

// The viewer makes only those rows that are in sight; what is read need not be drawn sharply.
const READ = { viewport: { width: 1400, height: 20_000 }, deviceScaleFactor: 0.1 }
const PICTURE = { viewport: { width: 1400, height: 3000 } }
const PATIENCE = 60_000 // milliseconds, for rows; none for those below a picture

/** Opens every group and every "Show All", waits until all rows are made, then tells what is shown. Runs in the page. */
async function look({ log, patience }) {
  const deadline = performance.now() + patience
  const all = (selector, within = document) => [...within.querySelectorAll(selector)]
  const text = (element) => element?.textContent ?? ''
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  const made = () => all('table').every((table) => all('.bolt-tree-row', table).length === table.ariaRowCount - 1)
  const drawn = async () => {
    do await frame()
    while (!made() && performance.now() < deadline)
  }
  window.show(JSON.parse(log))
  await drawn()
  for (;;) {
    const closed = all('.bolt-tree-expand-button.ms-Icon--ChevronRightMed:not(.invisible)')
    const more = all('.bolt-tree-row .bolt-link[role=button]')
    if (!closed.length && !more.length) break
    // A group opens on mousedown. One by one, each of them would draw the whole page anew.
    window.together(() => {
      for (const button of closed) button.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }))
      for (const link of more) link.click()
    })
    await drawn()
  }
  const results = []
  let rule = ''
  for (const row of all('.bolt-tree-row')) {
    if (row.ariaLevel === '1') {
      rule = [...row.querySelector('.swcRowRule').childNodes].slice(0, -1).map(text).join('')
      continue
    }
    const [place, details] = all('[role=gridcell]', row)
    const names = all('.bolt-table-two-line-cell-item', place)
    const source = details.querySelector('.swcSnippet code:last-child')
    results.push({
      rule,
      level: text(place.querySelector('desc')),
      place: (names.length ? names : all('.scroll-hidden', place)).map(text),
      message: details.firstElementChild.innerText,
      snippet: source?.innerText ?? '',
      marked: source ? all('.swcRegion', source).map(text).join('') : '',
    })
  }
  return {
    height: document.getElementById('viewer').scrollHeight,
    tool: text(document.querySelector('.swcRunTitle')?.firstChild),
    results,
    links: all('[role=gridcell]:not([colspan]) a').map((link) => link.href),
    said: all('.vss-ZeroData, .bolt-messagecard').map((element) => element.innerText),
  }
}

const { browser: executablePath, script, logs } = JSON.parse(readFileSync(0, 'utf8'))
const browser = await chromium.launch({ executablePath, args: ['--disable-gpu', '--disable-quic'] })
const problems = []

async function newPage(options) {
  const page = await browser.newPage(options)
  page.on('pageerror', (error) => problems.push(`error: ${error}`))
  page.on('request', (request) => problems.push(`request: ${request.url()}`))
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`)
    return dialog.dismiss()
  })
  await page.setContent('<!doctype html><meta charset="utf-8"><title>Log</title><div id="viewer"></div>')
  await page.addScriptTag({ path: script })
  return page
}

const [reader, camera] = [await newPage(READ), await newPage(PICTURE)]
const seen = []
for (const { path, picture } of logs) {
  const log = readFileSync(path, 'utf8')
  seen.push({ ...(await reader.evaluate(look, { log, patience: PATIENCE })), problems: problems.splice(0) })
  if (!picture) continue
  const { height } = await camera.evaluate(look, { log, patience: 0 })
  await camera.screenshot({ path: picture, clip: { x: 0, y: 0, ...PICTURE.viewport, height: Math.min(height, PICTURE.viewport.height) } })
}
await browser.close()
process.stdout.write(JSON.stringify(seen))
