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
    let verdict: HTML =
      preview.isHarmless
      ? .note(.good, "<p>Restoring loses and changes nothing that is in the present store.</p>")
      : .note(.warn, "<p>Some of what is in the present store would be changed or lost; it stays in quarantine.</p>")
    let rows = preview.entities.map { entity -> HTML in
      """
      <tr><th scope="row">\(printable(entity.name))</th>\(HTML.number(entity.added, tone: .good))\
      \(HTML.number(entity.changed, tone: .warn))\(HTML.number(entity.lost, tone: .bad))\(HTML.number(entity.unchanged))</tr>
      """
    }
    let heads = ["Added", "Changed", "Lost", "Unchanged"].map { name -> HTML in
      "<th scope=\"col\" class=\"number\">\(name)</th>"
    }
    let remarks = preview.remarks.map { remark -> HTML in "<p class=\"soft\">\(sentence(printable(remark)))</p>" }
    return """
      <h2>What would change</h2>\(present)\(verdict)\
      \(HTML.table("What would change", head: "<th scope=\"col\">Entity</th>\(heads)", rows))\(remarks)
      """
  }
}
