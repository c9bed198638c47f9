import HTTPServer
import Platform
import SupportBundle
import SystemPackage

/// The bundles that were written here: those in `Exports/` of the home.
///
/// It is the only way from an address to a bundle: a name is compared with those of the files that are there.
final class BundleCatalogue: Sendable {
  /// The name of the folder.
  static let folder: FilePath.Component = "Exports"

  private let home: FilePath
  private let surroundings: Surroundings

  /// What was summed up before, by what the file was then.
  private let sums = Mutex<[ListedBundle: BundlePreview]>([:])

  private static let maximumSums = 200

  init(home: FilePath, surroundings: Surroundings) {
    self.home = home
    self.surroundings = surroundings
  }

  /// The folder, whether it is there or not.
  var path: FilePath { home.appending(Self.folder) }

  /// The folder, made where it is not there.
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

  /// The bundle of a name.
  ///
  /// - Throws: ``Refusal`` 404 where there is none.
  func bundle(_ name: String) throws -> ListedBundle {
    guard let bundle = try bundles().first(where: { $0.name == name }) else {
      throw Refusal(.notFound, "there is no bundle of that name")
    }
    return bundle
  }

  /// What a bundle is, its sum included; what was summed up once is not read again.
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

/// A bundle that was written by this home.
struct ListedBundle: Sendable, Hashable, Encodable {
  /// The name of its file, which is also what it is called in addresses.
  let name: String

  let path: FilePath

  let bytes: Int64

  let date: Timestamp

  /// Whether its name says that it is encrypted.
  var isEncrypted: Bool { name.hasSuffix(".age") }

  var target: RequestTarget { .to("bundles", name) }

  /// Writes what lists tell of it.
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": name, "bytes": bytes, "date": date, "encrypted": isEncrypted, "location": target,
    ])
  }
}
