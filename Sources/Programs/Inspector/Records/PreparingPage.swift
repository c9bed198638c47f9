import HTTPServer
import RecordBrowsing
import StoreCoordination

/// The page that is shown while a side of a store is being made.
struct PreparingPage: InspectorPage {
  let store: ListedStore
  let side: SideName
  let progress: SideProgress
  let target: RequestTarget

  var title: String { "Reading \(store.name)" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }
  var scripts: [String] { ["records.js"] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "side": side.description, "preparing": true, "phase": progress.words,
      "fraction": progress.fraction,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let bar: HTML =
      progress.fraction.map { "<progress value=\"\(String($0))\" max=\"1\" aria-label=\"Progress\"></progress>" }
      ?? "<progress aria-label=\"Progress\"></progress>"
    return """
      <div class="empty" data-reload="700"><h1>\(title)</h1>
      <p>\(side.words) This is done once, into a private copy; the store itself is not touched.</p>
      \(bar)<p class="soft" role="status">\(sentence(progress.words))</p>
      <p><a class="button" href="\(target)">See whether it is done</a></p></div>
      """
  }
}
