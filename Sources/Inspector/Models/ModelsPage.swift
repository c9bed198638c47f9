import HTTPServer
import ManagedObjectModel
import PersistentStore
import Platform

struct ModelsPage: InspectorPage {
  let models: [InspectorModel]

  var title: String { "Models" }
  var section: PageSection { .models }

  func encode(to encoder: any Encoder) throws {
    let models = models.map { model -> JSON.Object in
      [
        "name": model.name, "current": model.model.currentVersionName, "versions": model.versions.map(\.name),
        "location": RequestTarget.to("models", model.name),
      ]
    }
    try encoder.encode(["models": models])
  }

  func content(_ frame: PageFrame) -> HTML {
    guard !models.isEmpty else {
      return """
        <h1>\(title)</h1><div class="empty"><h2>No model was given</h2>
        <p>With the app's model, stores are shown by its names and types, salvaged into its current version, and their \
        migration is planned. Start the inspector with it:</p>
        <pre>lazaret serve --model App.xcdatamodeld</pre></div>
        """
    }
    let items = models.map { model -> HTML in
      let count = model.versions.count
      let versions: HTML =
        count == 0
        ? "A schema in SQL" : "\(Words.counted(count, "version")), \(model.model.currentVersionName) is current"
      return """
        <li><div><h2><a href="\(RequestTarget.to("models", model.name))">\(model.name)</a></h2><p class="meta">\(versions)</p></div></li>
        """
    }
    return "<h1>\(title)</h1><ul class=\"stores\">\(items)</ul>"
  }
}

extension InspectorModel {
  /// The versions, oldest first; empty for a schema.
  var versions: [ModelVersion] {
    guard case .coreData(let bundle) = model else { return [] }
    return bundle.versions
  }
}
