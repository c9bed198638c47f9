package import StoreFiles
package import SystemPackage

/// Where the bundles of an inbox lie: as they were received, and what was unpacked and salvaged of them.
///
/// The records say which bundles there are; a storage keeps their bytes. Every call may be made again, and from any thread.
package protocol BundleStorage: Sendable {
  /// Whether bundles lie apart from this machine, so that others have them too; else they lie in the home.
  var isShared: Bool { get }

  /// The home below which workers of this machine work; each attempt at a job has one of its own in it where the storage is shared.
  var workHome: FilePath { get }

  /// Which bundles something of this process is working at, besides the inbox itself.
  var uses: BundleUses { get }

  // MARK: Bundles

  /// Keeps a bundle, whose file lies on this machine, for good: it is there when this returns.
  func keep(_ bundle: InboxBundle, from path: FilePath) throws

  /// Says that the records know a bundle, so that its file on this machine is one copy of two.
  func release(_ bundle: InboxBundle) throws

  /// The file of a bundle as it was received, on this machine.
  ///
  /// - Throws: `bundle-missing` where it is not there, `bundle-altered` where it is not what was received.
  func received(_ bundle: InboxBundle) throws -> FilePath

  /// Sees to it that what was unpacked and salvaged of a bundle is in its folder of this machine.
  func place(_ bundle: InboxBundle) throws

  /// Removes a bundle with everything that was made of it; no error where there is none.
  func remove(_ id: String) throws

  /// That what is removed is not gone, or that this is not known, as a sentence; nil where it is gone.
  func keepingWords(at date: Timestamp) throws -> String?

  /// Removes what was made of a bundle, where it lies in the home; in shared storage it stays until the bundle is removed.
  func removeResults(of id: String) throws

  // MARK: Work

  /// What was made before of the same things; nil where nothing was.
  func result(of making: BundleMaking) throws -> StoredResult?

  /// Puts what a job needs into the folders that it is worked at in.
  ///
  /// - Parameter goesOn: asked now and then; false ends it.
  /// - Returns: false where it was ended.
  func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool

  /// Keeps what was made, unless the same was made before.
  ///
  /// - Returns: what is kept: this, or what was there.
  func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult

  // MARK: Leftovers

  /// Removes what there is of bundles that no record knows, a part of it at each call.
  ///
  /// Nothing is removed that may be on its way to being known.
  func removeLeftovers(_ records: any InboxRecords) throws

  /// Removes the copies on this machine of bundles that the records do not know any more, and those that there is no room for.
  func removeCopies(_ records: any InboxRecords) throws

  // MARK: The place

  /// The mark that ties it to its records; nil where it has none.
  func mark() throws -> String?

  /// Gives it a mark, or finds the one that another process has just given it.
  func makeMark(_ mark: String) throws -> String

  /// Whether no bundle lies there.
  func isEmpty() throws -> Bool
}
