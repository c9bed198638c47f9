import HTTPServer
import Lazaret

/// The list of stores.
struct StoresPage: InspectorPage {
  let filter: String
  let quarantined: PagePart<[ListedStore]>

  init(_ catalogue: StoreCatalogue, filter: String) {
    self.filter = filter
    quarantined = PagePart { try catalogue.quarantined() }
  }

  var title: String { "Stores" }

  var json: JSONText {
    ["quarantined": quarantined.json { .array($0.map { ["id": .string($0.id.text), "name": .string($0.name)] }) }]
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <h1>\(title)</h1>
    \(quarantined.html { stores in "<ul class=\"stores\">\(stores.map { store -> HTML in "<li>\(store.name)</li>" })</ul>" })
    """
  }
}
