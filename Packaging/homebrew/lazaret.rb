# The formula for Homebrew, on macOS and Linux. Its publisher puts the project's own addresses here, and at a release `url` and `sha256` of
# its archive of sources. Until then: brew install --HEAD ./Packaging/homebrew/lazaret.rb, with the address of a clone as `head`.
class Lazaret < Formula
  desc "Keep, examine and salvage damaged Core Data, SwiftData and SQLite stores"
  homepage "https://example.org/lazaret"
  license "MIT"
  head "https://example.org/lazaret.git", branch: "main"

  depends_on "libdeflate"
  depends_on "libmicrohttpd"
  depends_on macos: :ventura
  depends_on "sqlite"
  depends_on "zstd"

  uses_from_macos "swift" => :build, since: :sequoia # 6.2
  uses_from_macos "curl"
  uses_from_macos "zlib"

  # macOS has CryptoKit.
  on_linux do
    depends_on "openssl@3"
  end

  def install
    # The sandbox of the build is Homebrew's.
    args = %w[--disable-sandbox -c release --traits SwiftSources --product lazaret]
    args << "--static-swift-stdlib" if OS.linux?
    libraries = %w[libdeflate libmicrohttpd sqlite zstd]
    libraries << "openssl@3" if OS.linux?
    libraries.each do |name|
      args << "-Xcc" << "-I#{formula_include(name)}" << "-Xswiftc" << "-I#{formula_include(name)}"
      args << "-Xlinker" << "-L#{Formula[name].opt_lib}"
    end
    # The versions that were recorded, whatever came out since.
    system "Scripts/check-versions", "--resolve"
    system "swift", "build", *args
    program = Utils.safe_popen_read("swift", "build", *args, "--show-bin-path").chomp
    system "Scripts/install", "--prefix", prefix, "--binary", "#{program}/lazaret"
    mv share/"bash-completion/completions/lazaret", buildpath/"lazaret.bash"
    bash_completion.install buildpath/"lazaret.bash" => "lazaret"
  end

  def formula_include(name)
    Formula[name].opt_include
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lazaret --version") unless head?
    # Stores are made, broken and opened, with the models that were installed.
    output = shell_output("#{bin}/lazaret demo --folder #{testpath}/Demo --json")
    assert_match "\"truncated\"", output
    assert_path_exists share/"man/man1/lazaret.1"
  end
end
