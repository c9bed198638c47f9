internal import StoreFiles
internal import SystemPackage

/// The files of a model, as far as loading one needs them; every error is told as an error of the model.
struct ModelFiles {
  /// The largest file that is read, in bytes.
  static let maximumFileSize = 64 << 20

  /// More entries than the folder of any model has.
  static let maximumEntries = 10_000

  let fileSystem: FileSystem

  /// Reads a whole file.
  ///
  /// The only place of this module that reads one; pipes and devices are refused before a byte is read of them.
  func read(_ path: FilePath) throws(ModelError) -> [UInt8] {
    return try wrapping(ModelError.init) { () throws(FileError) in
      try fileSystem.contents(of: path, limit: Self.maximumFileSize)
    }
  }

  /// Whether a path leads to a folder, links followed; an error where it leads nowhere.
  func isFolder(_ path: FilePath) throws(ModelError) -> Bool {
    do throws(FileError) {
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: "read the model", path: path)
      }
      return status.kind == .directory
    } catch {
      throw ModelError(error)
    }
  }

  /// The names of what is in a folder, in the order of their code units.
  func entries(_ path: FilePath) throws(ModelError) -> [String] {
    do throws(FileError) {
      let names = try fileSystem.entries(of: path).map(\.string)
      guard names.count <= Self.maximumEntries else {
        throw FileError(
          .tooLarge, operation: "read the model", path: path,
          detail: "the folder has more than \(Self.maximumEntries) entries")
      }
      return names.inCodeUnitOrder()
    } catch {
      throw ModelError(error)
    }
  }
}
