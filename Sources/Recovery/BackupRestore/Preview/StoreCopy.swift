import Backup
package import StoreFiles
package import SystemPackage

/// A copy of a sound store in use, as of one commit, with its log folded in: one file that SQLite can open anywhere.
package enum StoreCopy {
  /// Makes the copy in a private folder; nil for a store with damaged pages, of which nothing is left there.
  ///
  /// - Throws: `locked` or `changed-meanwhile` where a writer does not let it be read, or what copying throws.
  package static func make(
    of files: StoreFileSet, in folder: FilePath, surroundings: Surroundings
  ) throws -> FilePath? {
    try SoundCopy.make(of: files, in: folder, surroundings)
  }
}
