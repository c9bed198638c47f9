import Foundation
package import SystemPackage

extension Relocation {
  /// Reads a journal; nil where it is not whole.
  package init?(journal: FilePath, in fileSystem: FileSystem) throws(FileError) {
    let bytes = try fileSystem.contents(of: journal, limit: 1 << 28)
    do {
      self = try JSONDecoder().decode(Relocation.self, from: Data(bytes))
    } catch {
      return nil
    }
  }

  /// Writes the journal, whole or not at all.
  func write(to journal: FilePath, replacing: Bool, in fileSystem: FileSystem) throws {
    let bytes = try JSON.bytes(of: self, .line, to: "move the store", at: journal)
    try fileSystem.writeAtomically(bytes, to: journal, replacing: replacing)
  }
}
