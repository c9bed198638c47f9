import HTTPServer
import StoreCoordination

/// What restoring a backup would change, as a table.
struct RestorePreviewTable {
  private let preview: RestorePreview

  init(_ preview: RestorePreview) { self.preview = preview }

  var html: HTML {
    let present: HTML =
      preview.present == .damaged
      ? "<p>The present store is damaged; it is compared as far as its records can be salvaged.</p>" : .empty
    let rows = preview.entities.map { entity -> HTML in
      """
      <tr><th scope="row">\(printable(entity.name))</th>\(HTML.number(entity.added, tone: .good))\
      \(HTML.number(entity.changed, tone: .warn))\(HTML.number(entity.lost, tone: .bad))\(HTML.number(entity.unchanged))</tr>
      """
    }
    let pairs = preview.pairs.map { pairs -> HTML in
      """
      <tr><th scope="row">Pairs of \(pairs.words)</th>\(HTML.number(pairs.added, tone: .good))\
      \(HTML.number(pairs.changed, tone: .warn))\(HTML.number(pairs.lost, tone: .bad))<td></td></tr>
      """
    }
    let heads = ["Added", "Changed", "Lost", "Unchanged"].map { name -> HTML in
      "<th scope=\"col\" class=\"number\">\(name)</th>"
    }
    let schema = (preview.schemaWords + preview.valueWords).map { words -> HTML in "<li>\(sentence(words))</li>" }
    let changes: HTML = schema.isEmpty ? .empty : "<ul>\(schema)</ul>"
    let remarks = preview.remarks.map { remark -> HTML in "<p class=\"soft\">\(sentence(printable(remark)))</p>" }
    return """
      <h2>What would change</h2>\(present)\(verdict)\
      \(HTML.table("What would change", head: "<th scope=\"col\">Entity</th>\(heads)", rows + pairs))\(changes)\(remarks)
      """
  }

  /// What becomes of the present store, as far as it could be compared.
  private var verdict: HTML {
    if preview.isHarmless {
      return .note(.good, "<p>Restoring loses and changes nothing that is in the present store.</p>")
    }
    let words =
      preview.changesSomething
      ? "Some of what is in the present store would be changed or lost"
      : "Not everything in the present store could be compared, so that more may be changed or lost than is shown here"
    return .note(.warn, "<p>\(words); it stays in quarantine.</p>")
  }
}
