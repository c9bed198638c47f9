import HTTPServer
import Platform
import SupportBundle
import SystemPackage

/// The bundles in the home's `Exports/`.
///
/// A URL leads to a bundle only by comparing names with existing files.
final class BundleCatalogue: Sendable {
  static let folder: FilePath.Component = "Exports"

  private let home: FilePath
  private let surroundings: Surroundings

  private let sums = Mutex<[ListedBundle: BundlePreview]>([:])

  private static let maximumSums = 200

  init(home: FilePath, surroundings: Surroundings) {
    self.home = home
    self.surroundings = surroundings
  }

  /// The folder, which may not exist yet.
  var path: FilePath { home.appending(Self.folder) }

  func makeFolder() throws -> FilePath {
    try surroundings.fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
    return path
  }

  func bundles() throws -> [ListedBundle] {
    let fileSystem = surroundings.fileSystem
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    var bundles: [ListedBundle] = []
    for name in try fileSystem.entries(of: path) {
      let text = name.string
      guard text.hasSuffix(".lazaret.tar.gz") || text.hasSuffix(".lazaret.tar.gz.age"), !text.hasPrefix("."),
        let status = try fileSystem.status(of: path.appending(name), followingLinks: false), status.kind == .regular
      else { continue }
      bundles.append(
        ListedBundle(name: text, path: path.appending(name), bytes: status.size, date: status.modified))
    }
    return bundles.sorted { ($0.date, $0.name) > ($1.date, $1.name) }
  }

  /// - Throws: ``Refusal`` 404 if there is no such bundle.
  func bundle(_ name: String) throws -> ListedBundle {
    guard let bundle = try bundles().first(where: { $0.name == name }) else {
      throw Refusal(.notFound, "there is no bundle of that name")
    }
    return bundle
  }

  /// Returns a preview with digest, computed once.
  func preview(of bundle: ListedBundle) throws -> BundlePreview {
    if let known = sums.withLock({ $0[bundle] }) { return known }
    let preview = try BundlePreview(of: bundle.path, home: home, surroundings: surroundings)
    sums.withLock { sums in
      if sums.count >= Self.maximumSums { sums.removeAll() }
      sums[bundle] = preview
    }
    return preview
  }
}

struct ListedBundle: Sendable, Hashable, Encodable {
  /// The file name, also used in URLs.
  let name: String

  let path: FilePath

  let bytes: Int64

  let date: Timestamp

  var isEncrypted: Bool { name.hasSuffix(".age") }

  var target: RequestTarget { .to("bundles", name) }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": name, "bytes": bytes, "date": date, "encrypted": isEncrypted, "location": target,
    ])
  }
}
