import Backup
import Salvage
import StoreFiles
import SystemPackage

/// A private copy of the present store as one file, for comparing; the store itself is only read, and may be in use.
struct PresentStore: ~Copyable {
  let state: RestorePreview.Present

  /// The file that stands for it; nil where there is no store.
  let file: FilePath?

  private let copy: PrivateCopy?

  /// Copies a store as of one commit; of a damaged one, what rows can be salvaged.
  ///
  /// - Parameter folder: a private folder for the copy.
  /// - Throws: `locked` or `changed-meanwhile` where a writer does not let it be read, or what copying throws.
  init(_ files: StoreFileSet, in folder: FilePath, surroundings: Surroundings) throws {
    let fileSystem = surroundings.fileSystem
    guard try fileSystem.status(of: files.main) != nil else {
      state = .missing
      file = nil
      copy = nil
      return
    }
    if let path = try StoreCopy.make(of: files, in: folder, surroundings: surroundings) {
      state = .sound
      file = path
      copy = nil
      return
    }
    let evidence = try PrivateCopy(of: files, in: folder, surroundings: surroundings)
    let raw = folder.appending("Raw.sqlite")
    _ = try Salvager(surroundings: surroundings).salvageRaw(evidence.files.main, to: raw)
    state = .damaged
    file = raw
    copy = consume evidence
  }
}
