import Platform
import SystemPackage
import TestSupport
import Testing

#if os(Linux)
  /// A child process has the open files of its parent until it begins its own program; a duplicate stands for it here.
  @Suite struct LockReleaseTests {
    private let folder: TemporaryFolder
    private let set: StoreFileSet

    init() throws {
      folder = try TemporaryFolder()
      set = StoreFileSet(main: try folder.write([1, 2, 3], to: "App.sqlite"))
    }

    /// Duplicates of every descriptor of a file that this process has.
    private func duplicates(of path: FilePath) throws -> [FileDescriptor] {
      try FileSystem().entries(of: "/proc/self/fd").compactMap { name -> FileDescriptor? in
        let link = FilePath("/proc/self/fd").appending(name)
        guard let number = Int32(name.string), (try? FileSystem().linkTarget(link)) == path else {
          return nil
        }
        return try FileDescriptor(rawValue: number).duplicate()
      }
    }

    @Test func aLockEndsThoughAChildHasTheFileOpen() throws {
      let lock = try StoreLock(on: set, in: FileSystem())
      let kept = try duplicates(of: set.main)
      #expect(!kept.isEmpty)
      _ = consume lock
      _ = try SharedStoreLock(on: set, in: FileSystem())
      for descriptor in kept { try descriptor.close() }
    }

    @Test func aShareEndsThoughAChildHasTheFileOpen() throws {
      let share = try SharedStoreLock(on: set, in: FileSystem())
      let isWriterActive = share.isWriterActive
      #expect(!isWriterActive)
      let kept = try duplicates(of: set.main)
      #expect(!kept.isEmpty)
      _ = consume share
      _ = try StoreLock(on: set, in: FileSystem())
      for descriptor in kept { try descriptor.close() }
    }

    @Test func aFoldersLockEndsThoughAChildHasItOpen() throws {
      let lock = try FolderLock(folder.path, in: FileSystem())
      let kept = try duplicates(of: folder.path)
      #expect(!kept.isEmpty)
      _ = consume lock
      _ = try FolderLock(folder.path, patience: 0, in: FileSystem())
      for descriptor in kept { try descriptor.close() }
    }
  }
#endif
