import ExportCoordination
import HTTPServer
import StoreCoordination

/// The export of a store on one page: what is chosen, what the bundle would hold, and the button that agrees to it.
struct ExportPage: InspectorPage {
  let form: ActionForm

  /// What was chosen the last time.
  let chosen: PreparedExports.Choices

  /// The attributes that can be chosen; nil where no model tells them.
  let tree: ExportTree?

  /// The job that makes the export ready or writes it, as far as it is; nil for none.
  let job: RunningWork.Job?

  /// What is ready and waits for the user to agree; nil for nothing.
  let ready: PreparedExports.Entry?

  private var store: ListedStore { form.store }

  var title: String { form.title }
  var crumbs: [Crumb] { form.crumbs }
  var scripts: [String] { tree == nil ? [] : ["export.js"] }

  func encode(to encoder: any Encoder) throws {
    try form.encode(to: encoder)
    try encoder.encode([
      "tree": tree?.branches, "job": job.map { RequestTarget.to("work", $0.id) }, "ready": ready?.target,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let events: HTML = job?.isRunning == true ? " data-events=\"\(frame.events)\"" : ""
    return """
      <div\(events)>
      <h1>\(title)</h1><p class="soft">\(store.name) · \(Words.size(store.bytes))</p>
      \(progress(frame))\(agreement(frame))
      \(choice(frame))
      </div>
      """
  }

  /// How far the job is, or what came of it.
  private func progress(_ frame: PageFrame) -> HTML {
    guard let job else { return .empty }
    // What is ready says so itself.
    if job.state == .done, ready?.target == job.target { return .empty }
    guard job.state == .done else { return job.html(frame, isLinked: false) }
    return """
      \(job.html(frame, isLinked: false))<p class="row"><a class="button main" href="\(job.target)">The bundle</a></p>
      """
  }

  /// What the bundle would hold; hidden while another one is being made ready.
  private func agreement(_ frame: PageFrame) -> HTML {
    guard let ready, job?.isRunning != true else { return .empty }
    return "<h2 id=\"ready\">What the bundle would hold</h2>\(PreparedExportPage(entry: ready).preview(frame))"
  }

  private func choice(_ frame: PageFrame) -> HTML {
    guard job?.isRunning != true else { return .empty }
    let sentences = form.does.map { words -> HTML in "<li>\(words)</li>" }
    let ask: HTML
    if frame.allowsActions {
      let again: HTML = ready == nil ? " class=\"main\"" : ""
      ask = frame.form(
        form.target,
        """
        \(form.choices.map { field($0) })\(tree?.html(keeping: chosen.keeping, dropping: chosen.dropping) ?? typed)\
        <p class="row"><button\(again)>\(ready == nil ? "Preview" : "Preview again")</button>\
        <a class="button" href="\(RequestTarget.store(store.id))">Cancel</a></p>
        """)
    } else {
      ask = .note(.warn, "<p>This inspector only looks: no actions are offered.</p>")
    }
    let title = ready == nil ? "What goes into the bundle" : "Choose something else"
    return .panel(title, "<ul class=\"plain-words\">\(sentences)</ul>\(ask)")
  }

  /// A field of the form, with what was chosen the last time.
  private func field(_ choice: ActionForm.Choice) -> HTML {
    if case .pick("level", let label, let options) = choice {
      // Each level is explained, which no line of a menu has room for.
      let items = options.enumerated().map { place, option -> HTML in
        let isChosen: HTML = place == 0 ? " checked" : ""
        return """
          <label><input type="radio" name="level" value="\(option.value)"\(isChosen)><span class="said">\(option.label)</span></label>
          """
      }
      return "<fieldset class=\"choices\"><legend>\(label)</legend>\(items)</fieldset>"
    }
    guard case .text(let name, let label, let about) = choice, name == "recipients" else {
      return ActionForm.field(choice)
    }
    return """
      <p class="line-of-text"><label><span>\(label)</span><input type="text" name="\(name)" value="\(chosen.recipients)" \
      autocomplete="off" spellcheck="false"></label><small class="soft">\(about)</small></p>
      """
  }

  /// The attributes as text, where no model tells them.
  private var typed: HTML {
    let keep = chosen.keeping.sorted().joined(separator: " ")
    let drop = chosen.dropping.sorted().joined(separator: " ")
    return """
      <p class="line-of-text"><label><span>Columns whose values stay as they are</span>\
      <input type="text" name="keep" value="\(keep)" autocomplete="off" spellcheck="false"></label>\
      <small class="soft">table.column, several with spaces between; for scrubbed.</small></p>\
      <p class="line-of-text"><label><span>Columns whose values are overwritten</span>\
      <input type="text" name="drop" value="\(drop)" autocomplete="off" spellcheck="false"></label></p>
      """
  }
}
