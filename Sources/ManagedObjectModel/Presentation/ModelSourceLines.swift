internal import Platform
public import SystemPackage

/// The source lines of a version's entities and properties, for editors and build servers.
public struct ModelSourceLines: Sendable {
  /// The XML file, relative to the model's path.
  public let file: FilePath

  /// The lines from 1, with keys such as `Car.color`.
  private var lines: [String: Int] = [:]

  /// Finds a version's source.
  ///
  /// Returns nil if the version has no readable source.
  public init?(_ version: String, of bundle: ModelBundle) {
    guard let path = bundle.path else { return nil }
    let fileSystem = FileSystem()
    let places = [path.appending("\(version).xcdatamodel").appending("contents"), path.appending("contents"), path]
    // Loading already reported errors; an inaccessible place has no lines.
    guard let found = places.first(where: { (try? fileSystem.status(of: $0))?.kind == .regular }),
      found.lastComponent?.string == "contents",
      let bytes = try? fileSystem.contents(of: found, limit: 64 << 20)
    else { return nil }
    file = found
    // The model has been read from it; what has changed meanwhile has no lines.
    if let tree = try? XMLTree(bytes) { read(tree.root) }
  }

  /// Returns the line of a property, else of its entity, else the first.
  public func line(entity: String?, property: String?) -> Int {
    guard let entity else { return 1 }
    // A composite's leaf counts as its attribute.
    let name = property.flatMap { $0.split(separator: ".").first.map(String.init) }
    return name.flatMap { lines["\(entity).\($0)"] } ?? lines[entity] ?? 1
  }

  private static let properties: Set<String> = ["attribute", "relationship", "fetchedProperty"]

  private mutating func read(_ model: XMLTree.Element) {
    for entity in model.children(named: "entity") {
      guard let name = entity["name"] else { continue }
      lines[name] = entity.line
      for property in entity.children where Self.properties.contains(property.name) {
        if let own = property["name"] { lines["\(name).\(own)"] = property.line }
      }
    }
  }
}
