package import Platform
package import SystemPackage

extension EvidenceScope {
  /// Creates the scope of the kits and backups that concern a store: the earlier ones if it is quarantined, else its
  /// generation's.
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
        // Not a quarantined store, so its past is unknown.
      }
    }
    self.init(
      lineage: try QuarantineFolder(beside: files, surroundings: surroundings).lineage(of: files.main), event: nil)
  }
}
