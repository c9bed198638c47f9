internal import Foundation
internal import StoreFiles
internal import SystemPackage

/// The largest model file that is read, in bytes.
let maximumModelFileSize = 64 << 20

/// Reads a whole file of a model.
///
/// The only function of this module that opens a file. Pipes and devices are refused before a byte is read of them.
func readModelFile(_ path: FilePath) throws(FileError) -> [UInt8] {
  let operation = "read the model"
  do {
    let file = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
    defer { try? file.close() }
    let status = try file.stat()
    guard status.type != .directory else { throw FileError(.isDirectory, operation: operation, path: path) }
    guard status.type == .regular else { throw FileError(.notRegularFile, operation: operation, path: path) }
    guard status.size <= maximumModelFileSize else {
      throw FileError(
        .tooLarge, operation: operation, path: path,
        detail: "it has \(status.size) bytes, and \(maximumModelFileSize) are accepted")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
      guard count > 0 else { return bytes }
      // The file may grow while it is read.
      guard bytes.count + count <= maximumModelFileSize else {
        throw FileError(.tooLarge, operation: operation, path: path)
      }
      bytes += buffer[..<count]
    }
  } catch let error as FileError {
    throw error
  } catch let error as Errno {
    throw FileError(error, operation: operation, path: path)
  } catch {
    throw FileError(.other, operation: operation, path: path)
  }
}

/// What stands at a path, links followed.
func modelFileType(_ path: FilePath) throws(FileError) -> FileType {
  do {
    return try path.stat().type
  } catch {
    throw FileError(error, operation: "read the model", path: path)
  }
}

/// The names of what is in a folder, in the order of their code units; at most a few thousand.
func modelFolderEntries(_ path: FilePath) throws(FileError) -> [String] {
  let names: [String]
  do {
    names = try FileManager.default.contentsOfDirectory(atPath: path.string)
  } catch {
    let code = (error as NSError).code
    let kind: FileError.Kind =
      switch code {
      case CocoaError.fileReadNoPermission.rawValue: .permissionDenied
      case CocoaError.fileReadNoSuchFile.rawValue, CocoaError.fileNoSuchFile.rawValue: .notFound
      default: .other
      }
    throw FileError(kind, operation: "read the model", path: path)
  }
  guard names.count <= 10_000 else {
    throw FileError(
      .tooLarge, operation: "read the model", path: path, detail: "the folder has more than 10,000 entries")
  }
  return names.sorted(by: precedesByCodeUnit)
}
