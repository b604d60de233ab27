// What view.mjs loads into the page: the viewer with nothing hidden by its filters, made anew for each log.
import React from 'react'
import ReactDOM from 'react-dom'
import { Viewer } from '@microsoft/sarif-web-component'

const everything = {
  Baseline: { value: ['new', 'unchanged', 'updated', 'absent'] },
  Level: { value: ['error', 'warning', 'note', 'none'] },
  Suppression: { value: ['suppressed', 'unsuppressed'] },
}

window.show = (log) => {
  const place = document.getElementById('viewer')
  ReactDOM.unmountComponentAtNode(place)
  ReactDOM.render(React.createElement(Viewer, { logs: [log], showSuppression: true, filterState: everything }), place)
}

window.together = ReactDOM.unstable_batchedUpdates
