package import Platform
package import SystemPackage

extension EvidenceScope {
  /// Which kits and backups say something of the store at a path: of one that is quarantined those from before, of any other
  /// those of the generation that is there now.
  ///
  /// - Parameter path: the main file, whether it is there or not.
  /// - Throws: what the file system says.
  package init(of path: FilePath, surroundings: Surroundings = .machine) throws(FileError) {
    let files: StoreFileSet
    do throws(FileError) {
      files = try StoreFileSet.locate(path, in: surroundings.fileSystem)
    } catch {
      guard error.kind == .notFound else { throw error }
      self.init(lineage: nil, event: nil)
      return
    }
    if QuarantineFolder.isOne(files.folder), let id = files.main.stem {
      do {
        self = try QuarantineFolder(files.folder, surroundings: surroundings)
          .store(named: id, includingMissing: true).evidence
        return
      } catch let error as FileError where error.isEnvironmental {
        throw error
      } catch {
        // A file that lies there and is no quarantined store; nothing tells of it.
      }
    }
    self.init(
      lineage: try QuarantineFolder(beside: files, surroundings: surroundings).lineage(of: files.main), event: nil)
  }
}
