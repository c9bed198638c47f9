internal import Quarantine
internal import ScrubbingCheck
internal import StoreFiles
internal import SystemPackage

/// What tells that a certain file was among a store's: the names of its large values, and the SHA-256 of each file.
///
/// Neither is a value of a record, but who has a document could find out by either that it was there.
package struct FileMarks: Sendable {
  /// What looks for the names.
  var names: ValueSearch

  /// What looks for the sums.
  var sums: ValueSearch

  /// The marks of files by their names and sums.
  package init(names: Set<String>, sums: Set<[UInt8]>) {
    self.names = ValueSearch(names: names)
    self.sums = ValueSearch(sums: sums)
  }

  /// The marks of a store, by its files as they are and as its receipt has them.
  init(
    _ evidence: ExportEvidence, _ receipt: Receipt?, in fileSystem: FileSystem, isCancelled: () -> Bool
  ) throws {
    var (names, sums) = (Set<String>(), Set<[UInt8]>())
    func add(sum digits: String) {
      if let sum = [UInt8](hexadecimal: digits), sum.count == 32 { sums.insert(sum) }
    }
    func add(_ path: FilePath) throws {
      let digest = try FileDigest(of: try fileSystem.open(path)) { _ in
        if isCancelled() { throw StoreExporter.cancelled() }
      }
      add(sum: digest.hexadecimal)
    }
    for member in evidence.members where member.status.kind == .regular { try add(member.path) }
    let folder = evidence.files.path(of: .externalData)
    if try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory {
      let found = try fileSystem.descendants(of: folder)
      for path in found.folders + found.files.map(\.relative) { names.formUnion(path.map(\.string)) }
      for file in found.files where file.status.kind == .regular { try add(file.path) }
    }
    for file in receipt?.files ?? [] {
      add(sum: file.sha256)
      guard file.part == .externalData else { continue }
      for name in [file.name, file.originalPath].compactMap({ $0.path?.lastComponent?.string }) { names.insert(name) }
    }
    for result in [receipt?.salvage?.result].compactMap(\.self) + (receipt?.salvage?.others ?? []) {
      add(sum: result.sha256)
    }
    // The folder that Core Data itself makes has a name in every store.
    names.remove("_EXTERNAL_DATA")
    self.init(names: names, sums: sums)
  }
}
