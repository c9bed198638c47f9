import HTTPServer
import Lazaret

extension InspectorParts {
  /// The models to choose from; the first that was given is proposed.
  var modelOptions: [(value: String, label: String)] {
    models.map { (value: $0.name, label: "\($0.name) (\(printable($0.model.currentVersionName)))") }
      + [(value: "", label: "What the store says of itself")]
  }

  /// The model of a name; nil for none.
  ///
  /// - Throws: ``Refusal`` 400 for a name that no model has.
  func model(_ name: String?) throws(Refusal) -> AppModel? {
    guard let name, !name.isEmpty else { return nil }
    guard let model = models.first(where: { $0.name == name }) else {
      throw Refusal(.badRequest, "there is no model of that name")
    }
    return model.model
  }

  /// What is at a store's place now, in words; nil for nothing.
  func present(_ place: StoreFileSet) throws -> String? {
    let members = try place.members(in: surroundings.fileSystem)
    guard let first = members.first else { return nil }
    let bytes = members.reduce(Int64(0)) { $0 &+ $1.status.size }
    return "\(Words.size(bytes)), changed \(Words.date(first.status.modified))"
  }
}
