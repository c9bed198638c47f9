internal import StoreFiles
internal import SystemPackage

/// What a result is made of: the same things make the same result, which so is kept once.
package struct BundleMaking: Sendable, Hashable, Codable {
  /// What is done.
  package var kind: InboxJob.Kind

  /// The bundle that it is done to.
  package var bundle: String

  /// The SHA-256 of everything that it is made of, in hexadecimal digits.
  package var sum: String

  /// What a job would make of a bundle as it is.
  ///
  /// - Parameter models: the mark of the models; see ``mark(of:order:in:)``.
  /// - Throws: `worker-failed` where a store is to be salvaged that was not unpacked.
  init(_ kind: InboxJob.Kind, of bundle: InboxBundle, models: String) throws(InboxError) {
    self.kind = kind
    self.bundle = bundle.id
    var parts = ["lazaret-bundle-result", "1", kind.rawValue, LibraryVersion.current, bundle.sha256, "\(bundle.bytes)"]
    if kind == .salvage {
      guard let opened = bundle.opened, let id = bundle.quarantineID else {
        throw InboxError(.worker, operation: "salvage the store", detail: "nothing was unpacked of the bundle")
      }
      parts += [opened.sha256, id, models]
    }
    sum = FileDigest(of: Array(parts.joined(separator: "\n").utf8)).hexadecimal
  }

  /// A mark that tells models and the order of their versions from others, by what their files hold.
  static func mark(of models: [FilePath], order: [String]?, in fileSystem: FileSystem) throws -> String {
    var digest = RunningDigest()
    func add(_ text: String) { digest.add(Array("\(text.utf8.count):\(text)".utf8)) }
    func addFile(_ path: FilePath, _ name: String) throws {
      add(name)
      add(try FileDigest(of: fileSystem.open(path)).hexadecimal)
    }
    for model in models {
      add("model")
      guard try fileSystem.status(of: model)?.kind == .directory else {
        try addFile(model, model.lastComponent?.string ?? "")
        continue
      }
      let files = try fileSystem.descendants(of: model).files.filter { $0.status.kind == .regular }
      let named = files.map { file in (file.relative.map(\.string).joined(separator: "/"), file.path) }
      for (name, path) in named.sorted(by: { $0.0 < $1.0 }) { try addFile(path, name) }
    }
    for version in order ?? [] { add("version \(version)") }
    return digest.hexadecimal
  }
}
